// The descriptors of data files. Corpora come in thousands of files, but a process may have only a
// limited number open. A file is opened when it is read, and the files that have not been read for
// longest are closed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"

struct stat;

namespace kzero::data {

class DataFile;

/// The open files of a process. Thread-safe.
class OpenFiles {
 public:
  /// Keeps at most `max_open` files open, and at most half of the number that the process may open.
  /// Files that are being read at the same moment may exceed this.
  explicit OpenFiles(std::size_t max_open = 1024);
  OpenFiles(const OpenFiles&) = delete;
  OpenFiles& operator=(const OpenFiles&) = delete;

  /// The object that all data files of the process share, because they share its limit.
  static OpenFiles& of_process();

  /// Raises the limit of open files for `count` more, as far as they will be open at once and the
  /// system allows. The rest of the program keeps its share.
  void make_allowance(std::size_t count) const;

 private:
  friend class DataFile;

  int open(const char* path);
  void borrow(const DataFile& file);
  void give_back(const DataFile& file);
  void forget(const DataFile& file);
  void close_idle(std::size_t left);
  static std::size_t limit();

  std::size_t max_open_;
  std::mutex mutex_;
  std::uint64_t clock_ = 0;            // counts reads
  std::vector<const DataFile*> open_;  // in no order
};

/// A file that is reopened for reading whenever necessary. Reading is thread-safe and allocates
/// nothing.
class DataFile {
 public:
  explicit DataFile(std::string path, OpenFiles& all = OpenFiles::of_process());
  ~DataFile();
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  const std::string& path() const { return path_; }

  /// Opens the file for the first time, without waiting for the writer of a FIFO. Returns whether
  /// that worked; if not, errno has the reason. Later reads accept only this file.
  bool open(struct stat& status);

  /// Copies the bytes from `offset` on. Returns their number, which is smaller than requested only
  /// at the end of the file. Throws Error(files) if reading fails, or if another file replaced this
  /// one while it was closed.
  Index read(std::span<std::byte> bytes, Index offset) const;

  /// The present size. Throws as read() does.
  Index size_now() const;

  /// A digest of the name without folders, the size when the file was first opened, and
  /// `header_digest`, of its header.
  std::uint64_t digest(std::uint64_t header_digest) const;

 private:
  friend class OpenFiles;

  void open_again() const;
  bool is_same(const struct stat& status) const;
  template <class F>
  auto while_open(F&& use) const;

  std::string path_;
  OpenFiles& all_;
  ino_t number_ = 0;
  Index size_ = 0;      // when it was first opened
  Index modified_ = 0;  // at that time; nanoseconds since 1970
  // Protected by the mutex of OpenFiles.
  mutable int descriptor_ = -1;
  mutable int readers_ = 0;
  mutable std::uint64_t last_read_ = 0;  // by the clock of all files
};

}  // namespace kzero::data
