// A file that gets its name only when it is complete and on the disk.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace kzero::storage {

/// A file that is written as PATH.partial until finish(), and removed if finish() is never reached.
/// A partial file that a killed process left is replaced. One that another process is writing, or
/// that another user made, is an error (create_fresh).
class AtomicFile {
 public:
  /// Throws Error(files).
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws Error(files) unless all bytes were written.
  void append(std::span<const std::byte> bytes);

  /// Waits until all bytes are on the disk. Throws Error(files).
  void sync();

  /// Waits for the disk, then replaces any file of that name. Throws Error(files).
  void finish();

 private:
  void require(bool good, const char* what) const;

  std::filesystem::path path_;
  std::filesystem::path partial_;
  int id_;
  bool finished_ = false;
};

}  // namespace kzero::storage
