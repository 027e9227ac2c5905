#include "checkpoint/folder/lock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/abandoned_run.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "checkpoint/folder/retention.hpp"
#include "storage/files.hpp"

namespace kzero::checkpoint {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::chrono::milliseconds pause{100};  // between polls of another owner's lock
constexpr std::size_t max_bytes = 4096;          // most bytes of a lock file
constexpr const char* takeover_name = "lock.takeover";

int open_again(const fs::path& path, int flags) {
  return uninterrupted(
      [&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666); });
}

/// Writes and closes the file, after which a file server shows it to others. It has to survive a
/// crash of the machine: the text tells the next run that its owner did not.
bool write_all(int file, const std::string& text) {
  std::size_t done = 0;
  bool good = true;
  while (good && done < text.size()) {
    const auto count =
        uninterrupted([&] { return ::write(file, text.data() + done, text.size() - done); });
    good = count >= 0;
    done += count < 0 ? 0 : static_cast<std::size_t>(count);
  }
  good = good && uninterrupted([&] { return ::fsync(file); }) == 0;
  const int reason = errno;
  const bool closed = ::close(file) == 0 || errno == EINTR;
  if (!good) errno = reason;
  return good && closed;
}

std::string read_some(int file) {
  std::string text(max_bytes, '\0');
  const auto count = ::pread(file, text.data(), text.size(), 0);
  text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return text;
}

}  // namespace

struct FolderLock::Seen {
  std::string text;
  Owner owner;
  timespec changed{};

  bool same_time(const Seen& other) const {
    return changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
  }
};

FolderLock::FolderLock(fs::path folder, Say say, Owner owner, LockTimes times)
    : folder_(std::move(folder)),
      path_(folder_ / lock_name),
      say_(std::move(say)),
      owner_(std::move(owner)),
      text_(pack(owner_)),
      times_(times) {
  storage::create_folders_durably(folder_);
  acquire();
  try {
    remove_stale(folder_);
  } catch (const Error&) {
    ::unlink(path_.c_str());
    ::close(file_);
    throw;
  }
  thread_ = std::thread([this] { beat(); });
}

FolderLock::~FolderLock() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  ::close(file_);
  try {
    const auto seen = look_at(path_);
    if (seen && seen->text == text_) ::unlink(path_.c_str());
  } catch (const Error&) {  // the file that is there now is not this owner's
  }
}

/// Returns nullopt if the file does not exist.
std::optional<FolderLock::Seen> FolderLock::look_at(const fs::path& path) {
  const int file = open_again(path, O_RDONLY);
  if (file < 0 && (errno == ENOENT || errno == ESTALE)) return std::nullopt;
  struct stat status {};
  const bool good = file >= 0 && ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const std::string reason = file < 0 ? std::strerror(errno) : "it is not a regular file";
  Seen seen{.text = good ? read_some(file) : "", .owner = {}, .changed = status.st_mtim};
  if (file >= 0) ::close(file);
  KZERO_REQUIRE(good, ExitCode::files,
                "{}: should say which run writes into its folder, but cannot be read ({}); if no "
                "run does, remove it",
                path.string(), reason);
  seen.owner = unpack_owner(seen.text);
  return seen;
}

/// Creates the file and opens it for beat(). Returns false if it exists.
bool FolderLock::create(const fs::path& path) {
  const int file = open_again(path, O_WRONLY | O_CREAT | O_EXCL);
  if (file < 0 && errno == EEXIST) return false;
  const bool good = file >= 0 && write_all(file, text_);
  const std::string reason = std::strerror(errno);
  if (!good && file >= 0) ::unlink(path.c_str());
  KZERO_REQUIRE(good, ExitCode::files,
                "{}: cannot be written ({}); a run needs a folder of checkpoints that it may write "
                "into",
                path.string(), reason);
  const std::lock_guard lock(mutex_);
  if (file_ >= 0) ::close(file_);
  file_ = open_again(path, O_RDONLY);  // beat() touches this file, whichever has the name later
  return true;
}

void FolderLock::refuse(const Owner& other) const {
  fail(ExitCode::files,
       "{}: another run writes into this folder of checkpoints ({}); wait for its end, stop it, or "
       "choose another checkpoint.folder; if it is dead for certain, remove {}",
       folder_.string(), describe(other), path_.string());
}

void FolderLock::acquire() {
  std::optional<Seen> first;
  Clock::time_point since;
  bool told = false;
  for (; !create(path_); std::this_thread::sleep_for(pause)) {
    const auto seen = look_at(path_);
    if (!seen) continue;  // released just now
    if (!first || first->text != seen->text) {
      first = seen;
      since = Clock::now();
    }
    const Seconds watched = Clock::now() - since;
    const Life life = life_of(seen->owner, owner_, seen->changed.tv_sec);
    if (life == Life::running && watched.count() >= times_.grace) refuse(seen->owner);
    if (life == Life::unknown && !seen->same_time(*first)) refuse(seen->owner);
    if (life == Life::gone || (life == Life::unknown && watched.count() >= times_.silence)) {
      if (take_over(*seen)) return;
    } else if (life == Life::unknown && !std::exchange(told, true)) {
      say_(
          fmt::format("{}: locked by {}; waiting up to {} s to see whether that run is still alive",
                      folder_.string(), describe(seen->owner), times_.silence));
    }
  }
}

/// Makes the takeover exclusive. Only one process can create the file that replaces the lock. While
/// it exists no other process replaces a lock. The file is a lock itself: if its owner dies, others
/// detect that.
bool FolderLock::take_over(const Seen& seen) {
  const fs::path fresh = folder_ / takeover_name;
  if (!create(fresh)) {
    const auto other = look_at(fresh);
    if (other && life_of(other->owner, owner_, other->changed.tv_sec) == Life::gone)
      ::unlink(fresh.c_str());
    return false;
  }
  const auto now = look_at(path_);
  if (!now || now->text != seen.text || ::rename(fresh.c_str(), path_.c_str()) != 0) {
    ::unlink(fresh.c_str());
    return false;
  }
  say_(
      fmt::format("{}: taken over from {}, which is dead", folder_.string(), describe(seen.owner)));
  return true;
}

void FolderLock::require_held() {
  const auto seen = look_at(path_);
  if (seen && seen->text == text_) return;
  std::error_code error_follows;
  fs::create_directories(folder_, error_follows);
  if (!seen && create(path_)) return;
  fail(ExitCode::files,
       "{}: another run has taken this folder of checkpoints over ({}), as this one showed no sign "
       "of life; it writes no more checkpoints and ends",
       folder_.string(), seen ? describe(seen->owner) : "it came just now");
}

/// The thread's work: updates the file's time by the file server's clock. A run that was given up
/// shows no sign of life, even if this process cannot end.
void FolderLock::beat() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, Seconds(times_.beat), [this] { return ending_; })) {
    if (!run_is_abandoned()) ::futimens(file_, nullptr);
  }
}

}  // namespace kzero::checkpoint
