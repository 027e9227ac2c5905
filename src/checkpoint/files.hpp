// Files that must survive a crash: what is written is on the disk before the next step, and names
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

namespace kzero::checkpoint {

/// Waits until the file or folder is on the disk.
void sync_to_disk(const std::filesystem::path& path);

/// Makes the folder and those above it that are missing, and waits until each is known in the one
/// above.
void create_folders_durably(const std::filesystem::path& path);

/// What is worth a call of begin_sync().
inline constexpr Index sync_bytes = Index{8} << 20;

/// Lets the disk begin with what was written so far, without waiting for it.
void begin_sync(const std::filesystem::path& path);

/// Renames within one folder and waits until the folder knows the new name.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Replaces the file in one step: readers see the old bytes or the new ones, never a part.
void write_durably(const std::filesystem::path& path, std::string_view bytes);

/// The whole file.
std::string load_file(const std::filesystem::path& path);

/// A part of a file, in bytes.
struct Region {
  Index offset = 0;
  Index bytes = 0;
};

/// The parts of a file of `bytes` bytes that lie outside the regions, which may come in any order.
std::vector<Region> gaps_between(std::vector<Region> regions, Index bytes);

/// A file that is open for writing at any place. What was written is good only if sync() and
/// close() returned.
class OutputFile {
 public:
  /// A new file, replacing what was there.
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Writes all bytes from `offset` on.
  void write(Index offset, std::span<const std::byte> bytes) const;

  /// Takes the space for this many bytes, so that writing there cannot fill the disk.
  void allocate(Index bytes) const;

  /// Waits until the file is on the disk.
  void sync() const;

  /// A network file system may report a full quota only here. To be called once.
  void close();

 private:
  std::string path_;
  int id_;
};

/// A regular file that is open for reading at any place.
class InputFile {
 public:
  /// Never waits, as opening a pipe would: throws Error(files) for anything but a regular file.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  Index bytes() const;

  /// Fills `to` from `offset` on; returns how many bytes there were, fewer only at the file's end.
  Index read(Index offset, std::span<std::byte> to) const;

  /// Of the regions' bytes one after the other; of what there is of them in a file too short. Takes
  /// a small buffer.
  std::uint64_t checksum(std::span<const Region> regions) const;

 private:
  std::string path_;
  int id_;
};

}  // namespace kzero::checkpoint
