// Checksums of files and ranges: XXH3, 64 bits. Guards against damage, not against malice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace kzero {

/// Digest of a range of bytes.
std::uint64_t checksum(std::span<const std::byte> bytes);

/// The same digest, of bytes that come in chunks.
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

/// Digest of a whole file, read once in chunks. Throws Error(files) naming the file.
std::uint64_t checksum_of_file(const std::filesystem::path& path);

/// Sixteen lower-case hexadecimal digits.
std::string format_checksum(std::uint64_t digest);

}  // namespace kzero
