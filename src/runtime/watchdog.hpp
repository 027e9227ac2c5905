// Ends a run that waits in vain: a rank that died silently, hangs, or took another path through the
// program leaves the others in a collective that never completes. Also ends a run in which a
// library meets an error while no thread calls it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/wait.hpp"

namespace kzero::runtime {

class Watchdog {
 public:
  /// The action on a wait that lasts too long or has failed. `waited` counts the time in which this
  /// process ran: a job that its scheduler suspends has not waited.
  using Alarm = std::function<void(const Wait&, std::chrono::duration<double> waited)>;

  /// Calls `alarm`, once and on its own thread, when a wait of this process has lasted for
  /// `seconds` (0: no limit) or has failed.
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
