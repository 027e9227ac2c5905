// Reads files: a part, the first bytes, or all bytes up to a limit. Anything but a regular file is
// refused without blocking, as opening a pipe would. Does not know what the bytes mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "base/descriptor.hpp"
#include "base/types.hpp"

namespace kzero {

/// A part of a file, in bytes.
struct Region {
  Index offset = 0;
  Index bytes = 0;
};

/// A regular file that is open for reading at any offset. Errors are Error(files) and name the
/// path.
class InputFile {
 public:
  /// Throws Error(files) for anything but a regular file.
  explicit InputFile(const std::filesystem::path& path);

  Index bytes() const;

  /// Fills `to` from `offset` on; returns the number of bytes read, fewer than asked for only at
  /// the file's end.
  Index read(Index offset, std::span<std::byte> to) const;

  /// Returns the checksum of the regions' bytes in order; of a file that is too short, of what
  /// there is. Uses a small buffer.
  std::uint64_t checksum(std::span<const Region> regions) const;

 private:
  std::string path_;
  Descriptor file_;
};

inline constexpr Index any_size = std::numeric_limits<Index>::max();

/// Reads the full file. Throws Error(files) if it cannot be read, is not a regular file, or has
/// more than `limit_bytes`.
std::string load_file(const std::filesystem::path& path, Index limit_bytes = any_size);

/// Returns the first `count` bytes of a file, or all if it has fewer; nothing if it is not a
/// regular file or cannot be read.
std::optional<std::string> first_bytes(const std::filesystem::path& path, std::size_t count);

/// The bytes of a file or why there are none, for callers with messages of their own.
struct Loaded {
  enum class State { good, missing, not_regular, too_large, unreadable };

  State state = State::good;
  std::string bytes{};
  Index file_bytes = 0;  // if it is good or too large
  int error = 0;         // errno, if it is missing or unreadable; 0: it became shorter meanwhile
};

/// Reads the full file unless it has more than `limit_bytes`. Throws nothing.
Loaded try_load(const std::filesystem::path& path, Index limit_bytes = any_size);

}  // namespace kzero
