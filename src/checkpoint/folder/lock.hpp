// Lets one run at a time write into a folder of checkpoints. A file `lock` in the folder names the
// run. This works on any file system that can create a file exclusively (NFS too). The lock does
// not outlive its owner for long, because others detect whether the owner lives. On the same
// machine they check its process, and whether the machine has booted since. From another machine
// they watch the file's time of change, which the owner renews.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "checkpoint/folder/owner.hpp"

namespace kzero::checkpoint {

inline constexpr const char* lock_name = "lock";

/// Intervals of the lock, in seconds.
struct LockTimes {
  double beat = 10;  // between signs of life
  double silence =
      120;  // without a sign of life, after which a process of another machine counts as dead
  double grace = 5;  // for a process of this machine to end
};

/// The right to write into a folder, from construction to destruction. One process of a job holds
/// it for all. No call is collective.
class FolderLock {
 public:
  using Say = std::function<void(const std::string&)>;

  /// Creates the folder if it is missing, locks it, and removes the remains of interrupted writes
  /// (remove_stale). A dead owner's lock is taken over and reported to `say`. Deciding whether an
  /// owner on another machine is dead takes up to times.silence. Throws Error(files) with the
  /// owner's name if it lives, or if the file cannot be written.
  FolderLock(std::filesystem::path folder, Say say, Owner owner = this_process(),
             LockTimes times = {});

  /// Releases the folder if the lock is still this owner's.
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Checks the lock. Call it before each write. A process that was suspended may have lost the
  /// folder to another; then throws Error(files). Recreates a lock file that was removed.
  void require_held();

 private:
  struct Seen;

  static std::optional<Seen> look_at(const std::filesystem::path& path);
  bool create(const std::filesystem::path& path);
  void acquire();
  bool take_over(const Seen& seen);
  [[noreturn]] void refuse(const Owner& other) const;
  void beat();

  const std::filesystem::path folder_, path_;
  const Say say_;
  const Owner owner_;
  const std::string text_;  // of the file
  const LockTimes times_;
  std::mutex mutex_;  // guards what the thread uses
  int file_ = -1;
  bool ending_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace kzero::checkpoint
