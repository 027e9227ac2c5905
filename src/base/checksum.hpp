// Checksums of ranges of bytes: XXH3, 64 bits. They guard against damage, not against malice.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace kzero {

/// The digest of a range of bytes.
std::uint64_t checksum(std::span<const std::byte> bytes);

/// Computes the same digest from bytes that arrive in chunks.
class Digest {
 public:
  Digest();
  void update(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  struct Free {
    void operator()(void* state) const;
  };
  std::unique_ptr<void, Free> state_;
};

/// Formats a digest as sixteen lower-case hexadecimal digits.
std::string format_checksum(std::uint64_t digest);

}  // namespace kzero
