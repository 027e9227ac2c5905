// The descriptors of data files. Corpora come in thousands of files, while a process may have only
// so many open: a file is opened when it is read, and the files that were not read for longest are
// closed.
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

/// The files of a process that are open. Thread-safe.
class OpenFiles {
 public:
  /// Keeps at most `most` files open, and fewer where the process may open fewer than twice as
  /// many. Files that are being read at the same moment may exceed this.
  explicit OpenFiles(std::size_t most = 1024);
  OpenFiles(const OpenFiles&) = delete;
  OpenFiles& operator=(const OpenFiles&) = delete;

  /// The one that all data files of the process share, as they share its limit.
  static OpenFiles& of_process();

  /// Raises the limit of open files for `count` more, as far as they will be open at once and the
  /// system allows; the rest of the program keeps what it had.
  void make_allowance(std::size_t count) const;

 private:
  friend class DataFile;

  int open(const char* path);
  void borrow(const DataFile& file);
  void give_back(const DataFile& file);
  void forget(const DataFile& file);
  void close_idle(std::size_t left);
  static std::size_t limit();

  std::size_t most_;
  std::mutex mutex_;
  std::uint64_t clock_ = 0;            // counts reads
  std::vector<const DataFile*> open_;  // in no order
};

/// A file that is opened for reading whenever it has to be. Reading is thread-safe and allocates
/// nothing.
class DataFile {
 public:
  explicit DataFile(std::string path, OpenFiles& all = OpenFiles::of_process());
  ~DataFile();
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  const std::string& path() const { return path_; }

  /// Opens the file for the first time, without waiting for the writer of a FIFO, and returns
  /// whether that worked; else errno has the reason. From now on it is this file that is read.
  bool open(struct stat& status);

  /// Copies the bytes from `offset` on. Returns their number, fewer than asked for only at the end
  /// of the file. Throws Error(files) if that fails, or if another file has taken its place while
  /// it was closed.
  Index read(std::span<std::byte> bytes, Index offset) const;

  /// The size now. Throws as read() does.
  Index size_now() const;

 private:
  friend class OpenFiles;

  void open_again() const;
  bool is_same(const struct stat& status) const;
  template <class F>
  auto while_open(F&& use) const;

  std::string path_;
  OpenFiles& all_;
  ino_t number_ = 0;
  Index size_ = 0;      // when it was opened first
  Index modified_ = 0;  // then; nanoseconds since 1970
  // The mutex of OpenFiles protects these.
  mutable int descriptor_ = -1;
  mutable int readers_ = 0;
  mutable std::uint64_t last_read_ = 0;  // by the clock of all files
};

}  // namespace kzero::data
