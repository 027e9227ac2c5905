// A registry of this process's waits for other ranks. Code that communicates registers its waits; a
// watchdog reads them.
#pragma once

#include <chrono>
#include <list>
#include <optional>
#include <string>

#include "base/types.hpp"

namespace kzero {

struct Wait {
  std::string what;   // "all_gather of parameters"
  std::string group;  // the group of ranks that communicates
  int rank = -1;      // the launch rank that is waited for; -1: any of the group
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  std::string problem = {};  // a failure reported by a library while no thread called it
};

/// Registers a wait for as long as the object lives.
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

/// The longest wait of all threads.
std::optional<Wait> longest_wait();

/// Reports a wait that failed on a thread that cannot throw to a caller. The first report is kept.
void note_failure(Wait wait);
std::optional<Wait> failed_wait();

/// The training step to which waits belong; -1 outside of steps.
void set_step(Index step);
Index step_now();

}  // namespace kzero
