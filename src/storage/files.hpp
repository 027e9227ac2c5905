// Files that must survive a crash: written data is on the disk before the next step, and names
// change in one step. Errors are Error(files) and name the path. Files are read by
// base/input_file.hpp.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_file.hpp"
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

/// Returns the parts of a file of `bytes` bytes that lie outside the regions, which may come in any
/// order.
std::vector<Region> gaps_between(std::vector<Region> regions, Index bytes);

/// A file that is open for writing at any offset. The written data is good only if sync() and
/// close() returned.
class OutputFile {
 public:
  /// Creates a new file, and replaces one of this user (create_fresh).
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

// Creates files that no other user has open. Whoever may write to a folder can put a file where one
// is about to be written, and would keep it open.

enum class FileLock { none, exclusive };

/// Creates the file and returns its descriptor, open for writing. A file or link of that name is
/// replaced if this user made it, as a killed process does. One of another user, a file with
/// several names (hard links), and anything else is an error. With FileLock::exclusive the file is
/// locked (flock), and a file that another process has locked is an error, too. Throws
/// Error(files).
int create_fresh(const std::filesystem::path& path, FileLock lock);

}  // namespace kzero::storage
