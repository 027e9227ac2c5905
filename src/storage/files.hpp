// Files that must survive a crash: written data is on the disk before the next step, and names
// change in one step. Also reads parts of files, and checksums of parts. Errors are Error(files)
// and name the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace kzero::storage {

/// Waits until the file or folder is on the disk.
void sync_to_disk(const std::filesystem::path& path);

/// Creates the folder and its missing parents, and waits until each is recorded in its parent.
void create_folders_durably(const std::filesystem::path& path);

/// The least number of bytes that justify a call of begin_sync().
inline constexpr Index sync_bytes = Index{8} << 20;

/// Starts writing the data so far to the disk, without waiting for it.
void begin_sync(const std::filesystem::path& path);

/// Renames within one folder and waits until the folder has recorded the new name.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Replaces the file atomically: readers see the old bytes or the new ones, never a part.
void write_durably(const std::filesystem::path& path, std::string_view bytes);

/// Reads the full file.
std::string load_file(const std::filesystem::path& path);

/// A part of a file, in bytes.
struct Region {
  Index offset = 0;
  Index bytes = 0;
};

/// Returns the parts of a file of `bytes` bytes that lie outside the regions, which may come in any
/// order.
std::vector<Region> gaps_between(std::vector<Region> regions, Index bytes);

/// A file that is open for writing at any offset. The written data is good only if sync() and
/// close() returned.
class OutputFile {
 public:
  /// Creates a new file, replacing an existing one.
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Writes all bytes from `offset` on.
  void write(Index offset, std::span<const std::byte> bytes) const;

  /// Reserves the space for this many bytes, so that writing there cannot fill the disk.
  void allocate(Index bytes) const;

  /// Waits until the file is on the disk.
  void sync() const;

  /// Closes the file; a network file system may report a full quota only here. Call it once.
  void close();

 private:
  std::string path_;
  int id_;
};

/// A regular file that is open for reading at any offset.
class InputFile {
 public:
  /// Opens the file without blocking, as opening a pipe would: throws Error(files) for anything but
  /// a regular file.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  Index bytes() const;

  /// Fills `to` from `offset` on; returns the number of bytes read, fewer than asked for only at
  /// the file's end.
  Index read(Index offset, std::span<std::byte> to) const;

  /// Returns the checksum of the regions' bytes in order; of a file that is too short, of what
  /// there is. Uses a small buffer.
  std::uint64_t checksum(std::span<const Region> regions) const;

 private:
  std::string path_;
  int id_;
};

}  // namespace kzero::storage
