// What the threads of this process are waiting for other ranks to do, noted where messages are made
// and read by a watchdog.
#pragma once

#include <chrono>
#include <list>
#include <optional>
#include <string>

#include "base/types.hpp"

namespace kzero {

struct Wait {
  std::string what;   // "all_gather of parameters"
  std::string group;  // of ranks
  int rank = -1;      // of the launch, that is waited for; -1: any of the group
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  std::string problem = {};  // that ended it, where a library met one while nobody called it
};

/// Notes a wait while it lives.
class Waiting {
 public:
  explicit Waiting(Wait wait);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  const Wait& wait() const { return *entry_; }

 private:
  std::list<Wait>::iterator entry_;
};

/// The wait that has lasted longest, of all threads.
std::optional<Wait> longest_wait();

/// For threads that cannot throw to anyone: a wait that has a problem. The first one is kept.
void note_failure(Wait wait);
std::optional<Wait> failed_wait();

/// The training step that waits belong to; -1 outside of steps.
void set_step(Index step);
Index step_now();

}  // namespace kzero
