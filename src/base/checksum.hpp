// Checksums of ranges of bytes: XXH3, 64 bits. They guard against damage, not against malice.
#pragma once

#include <array>
#include <cstddef>
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

// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of short messages. Nobody can compute it
// without the key, or learn the key from hashes.

/// 128 random bits. The first word holds bytes 0 to 7 of the published key, in little endian.
using SipKey = std::array<std::uint64_t, 2>;

std::uint64_t siphash(const SipKey& key, std::span<const std::byte> bytes);

}  // namespace kzero
