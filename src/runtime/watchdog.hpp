// Ends a run that waits in vain. A rank that died silently, hangs, or took another path through the
// program leaves the others in a collective that never completes. Also ends a run in which a
// library reports an error while no thread calls it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/wait.hpp"

namespace kzero::runtime {

class Watchdog {
 public:
  /// Called for a wait that lasts too long or has failed. `waited` counts only time in which this
  /// process ran: a job that its scheduler suspends does not wait.
  using Alarm = std::function<void(const Wait&, std::chrono::duration<double> waited)>;

  /// Calls `alarm` once, on its own thread, when a wait of this process has lasted for `seconds`
  /// (0: no limit) or has failed.
  Watchdog(double seconds, Alarm alarm);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();

  std::chrono::duration<double> limit_;
  Alarm alarm_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kzero::runtime
