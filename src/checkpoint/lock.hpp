// One run at a time writes into a folder of checkpoints: a file `lock` in it says which. It works
// on any file system on which a file can be created exclusively (NFS too), and outlives no owner
// for long: others see whether the owner lives, by its process on the same machine, by the file's
// time of change, which the owner renews, on another.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "checkpoint/owner.hpp"

namespace kzero::checkpoint {

inline constexpr const char* lock_name = "lock";

/// In seconds.
struct LockTimes {
  double beat = 10;      // from one sign of life to the next
  double silence = 120;  // without one, after which a process of another machine counts as dead
  double grace = 5;      // that a process of this machine is given to end
};

/// The right to write into a folder, from construction to destruction. One process of a job holds
/// it for all. Nothing here is collective.
class FolderLock {
 public:
  using Say = std::function<void(const std::string&)>;

  /// Makes the folder if it is missing, takes it, and removes what interrupted writes have left
  /// there (remove_stale). A dead owner's is taken over, which `say` is told; to find out about one
  /// of another machine takes up to times.silence. Throws Error(files) with the owner's name if
  /// that lives, or if the file cannot be written.
  FolderLock(std::filesystem::path folder, Say say, Owner owner = this_process(),
             LockTimes times = {});

  /// Gives the folder back, if it is still this owner's.
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// To be called before each write. A process that was suspended may have lost the folder to
  /// another: Error(files). A file that somebody has removed is made again.
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
  std::mutex mutex_;  // of what the thread uses
  int file_ = -1;
  bool ending_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace kzero::checkpoint
