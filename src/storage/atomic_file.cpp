#include "storage/atomic_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/uninterrupted.hpp"
#include "storage/files.hpp"

namespace kzero::storage {

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), partial_(path_.string() + ".partial") {
  try {
    do {
      if (id_ >= 0) ::close(std::exchange(id_, -1));
      open();
    } while (!is_still_there());
    require(::ftruncate(id_, 0) == 0, "cannot be written");
  } catch (const Error&) {
    if (id_ >= 0) ::close(id_);
    throw;
  }
}

void AtomicFile::open() {
  // Opened without O_TRUNC, because the bytes may still belong to another process, and without
  // following links, which may lead anywhere.
  constexpr int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  id_ = uninterrupted([&] { return ::open(partial_.c_str(), flags, 0666); });
  require(id_ >= 0, "cannot be written");
  struct stat status {};
  require(::fstat(id_, &status) == 0, "cannot be written");
  KZERO_REQUIRE(S_ISREG(status.st_mode), ExitCode::files, "{}: is in the way; it is not a file",
                partial_.string());
  KZERO_REQUIRE(::flock(id_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK, ExitCode::files,
                "{}: another process is writing it", partial_.string());
}

bool AtomicFile::is_still_there() const {
  struct stat here {};
  struct stat named {};
  return ::fstat(id_, &here) == 0 && ::lstat(partial_.c_str(), &named) == 0 &&
         here.st_dev == named.st_dev && here.st_ino == named.st_ino;
}

AtomicFile::~AtomicFile() {
  if (!finished_) ::unlink(partial_.c_str());
  ::close(id_);
}

void AtomicFile::require(bool good, const char* what) const {
  KZERO_REQUIRE(good, ExitCode::files, "{}: {} ({})", partial_.string(), what,
                std::strerror(errno));
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto written = uninterrupted([&] { return ::write(id_, bytes.data(), bytes.size()); });
    require(written >= 0, "writing failed");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::sync() {
  require(uninterrupted([&] { return ::fsync(id_); }) == 0, "cannot be written to the disk");
}

void AtomicFile::finish() {
  sync();
  // The lock is held until the file has its name, so that nobody else opens it in between.
  storage::rename_durably(partial_, path_);
  finished_ = true;
}

}  // namespace kzero::storage
