// Ends a run that waits in vain: a rank that has died without a word, hangs, or has taken another
// way through the program leaves the others in an exchange that never ends; and one in which a
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
  /// What a wait that lasts too long, or has failed, leads to. `waited` counts the time in which
  /// this process ran: a job that its scheduler suspends has waited for nobody.
  using Alarm = std::function<void(const Wait&, std::chrono::duration<double> waited)>;

  /// Once a wait of this process has lasted for `seconds` (0: none may), or has failed, calls
  /// `alarm`, once, on a thread of its own.
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
