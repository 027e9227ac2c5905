#include "storage/files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/descriptor.hpp"
#include "base/error.hpp"

namespace kzero::storage {

namespace {

void require(bool good, const std::string& path, const char* what) {
  KZERO_REQUIRE(good, ExitCode::files, "{}: {} ({})", path, what, std::strerror(errno));
}

int open_to_sync(const std::string& path) {
  const int id = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  require(id >= 0, path, "cannot be opened");
  return id;
}

void sync(int id, const std::string& path) {
  require(uninterrupted([&] { return ::fsync(id); }) == 0, path, "cannot be written to the disk");
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  const auto folder = path.parent_path();
  return folder.empty() ? "." : folder;
}

}  // namespace

void sync_to_disk(const std::filesystem::path& path) {
  const Descriptor opened(open_to_sync(path.string()));
  sync(opened.number(), path.string());
}

void begin_sync(const std::filesystem::path& path) {
  const Descriptor opened(open_to_sync(path.string()));
  ::sync_file_range(opened.number(), 0, 0,
                    SYNC_FILE_RANGE_WRITE);  // only saves time, so it may fail
}

void create_folders_durably(const std::filesystem::path& path) {
  if (path.filename().empty() && path.has_relative_path()) {
    return create_folders_durably(path.parent_path());  // "name/"
  }
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return;
  create_folders_durably(folder_of(path));
  std::filesystem::create_directory(path, error);  // another process may be faster
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be created ({})", path.string(),
                error.message());
  sync_to_disk(folder_of(path));
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be renamed to {} ({})", from.string(),
                to.filename().string(), error.message());
  sync_to_disk(folder_of(to));
}

void write_durably(const std::filesystem::path& path, std::string_view bytes) {
  auto fresh = path;
  fresh += ".partial";
  OutputFile file(fresh);
  try {
    file.write(0, std::as_bytes(std::span(bytes)));
    file.sync();
    file.close();
    rename_durably(fresh, path);
  } catch (const Error&) {
    std::error_code ignored;
    std::filesystem::remove(fresh, ignored);
    throw;
  }
}

std::vector<Region> gaps_between(std::vector<Region> regions, Index bytes) {
  std::ranges::sort(regions, {}, &Region::offset);
  std::vector<Region> gaps;
  Index at = 0;
  for (const Region& region : regions) {
    if (region.offset > at) gaps.push_back({at, region.offset - at});
    at = std::max(at, region.offset + region.bytes);
  }
  if (bytes > at) gaps.push_back({at, bytes - at});
  return gaps;
}

OutputFile::OutputFile(const std::filesystem::path& path)
    : path_(path.string()), id_(create_fresh(path, FileLock::none)) {}

OutputFile::~OutputFile() {
  if (id_ >= 0) ::close(id_);
}

void OutputFile::write(Index offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const auto written =
        uninterrupted([&] { return ::pwrite(id_, bytes.data(), bytes.size(), offset); });
    require(written >= 0, path_, "cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += written;
  }
}

void OutputFile::allocate(Index bytes) const {
  // This call returns its error rather than leaving it in errno.
  do {
    errno = ::posix_fallocate(id_, 0, bytes);
  } while (errno == EINTR);
  require(errno == 0, path_, "cannot be written");
}

void OutputFile::sync() const { storage::sync(id_, path_); }

void OutputFile::close() {
  // Linux has closed the file when it reports an interruption, and its bytes are synced before.
  const bool closed = ::close(std::exchange(id_, -1)) == 0 || errno == EINTR;
  require(closed, path_, "cannot be closed");
}

namespace {

constexpr int max_attempts = 100;  // each needs another process that creates or removes the file

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
  for (int i = 0; i < max_attempts; ++i) {
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
