#include "storage/fresh_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/uninterrupted.hpp"

namespace kzero::storage {

namespace {

constexpr int most_attempts = 100;  // each needs another process that creates or removes the file

int open_file(const std::string& path, int flags) {
  return uninterrupted([&] {
    return ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0666);
  });
}

void require_done(bool good, const std::string& path, const char* what) {
  KZERO_REQUIRE(good, ExitCode::files, "{}: {} ({})", path, what, std::strerror(errno));
}

/// Locks an opened file. On a file system without locks, nobody can have locked it.
void take_lock(int file, const std::string& path) {
  KZERO_REQUIRE(::flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK, ExitCode::files,
                "{}: another process is writing it", path);
}

bool has_name(int file, const std::string& path) {
  struct stat here {};
  struct stat named {};
  return ::fstat(file, &here) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         here.st_dev == named.st_dev && here.st_ino == named.st_ino;
}

void require_own(const struct stat& left, const std::string& path) {
  KZERO_REQUIRE(S_ISREG(left.st_mode) || S_ISLNK(left.st_mode), ExitCode::files,
                "{}: is in the way; it is not a file", path);
  KZERO_REQUIRE(left.st_uid == ::geteuid(), ExitCode::files,
                "{}: is in the way; it belongs to user {}, who may have it open. Remove it, or "
                "write into a folder of your own",
                path, left.st_uid);
  KZERO_REQUIRE(left.st_nlink == 1, ExitCode::files,
                "{}: is in the way; its content has {} names (hard links). Remove this one", path,
                left.st_nlink);
}

/// Removes a file or a link of this user. A file is locked meanwhile, so that no other process
/// takes it over.
void remove_left_file(const std::string& path, FileLock lock) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    require_done(errno == ENOENT, path, "cannot be examined");
    return;
  }
  require_own(status, path);
  const Descriptor left(lock == FileLock::exclusive ? open_file(path, 0) : -1);
  if (left.number() >= 0) {
    take_lock(left.number(), path);
    if (!has_name(left.number(), path)) return;
  }
  require_done(::unlink(path.c_str()) == 0 || errno == ENOENT, path, "cannot be replaced");
}

}  // namespace

int create_fresh(const std::filesystem::path& file, FileLock lock) {
  const std::string path = file.string();
  for (int i = 0; i < most_attempts; ++i) {
    const int id = open_file(path, O_CREAT | O_EXCL);
    if (id < 0) {
      require_done(errno == EEXIST, path, "cannot be created");
      remove_left_file(path, lock);
      continue;
    }
    if (lock == FileLock::none) return id;
    try {
      take_lock(id, path);
    } catch (const Error&) {
      ::close(id);
      throw;
    }
    if (has_name(id, path)) return id;  // nobody took it for one that was left
    ::close(id);
  }
  fail(ExitCode::files, "{}: other processes keep creating it", path);
}

}  // namespace kzero::storage
