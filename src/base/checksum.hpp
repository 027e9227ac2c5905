// Checksums of files and ranges: XXH3, 64 bits. Guards against damage, not against malice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace kzero {

/// Digest of a range of bytes.
std::uint64_t checksum(std::span<const std::byte> bytes);

/// Digest of a whole file, read once in pieces. Throws Error(files) naming the file.
std::uint64_t checksum_of_file(const std::filesystem::path& path);

/// Sixteen lower-case hexadecimal digits.
std::string format_checksum(std::uint64_t digest);

}  // namespace kzero
