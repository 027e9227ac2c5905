#include "base/wait.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace kzero {

namespace {

// One list per process: the watchdog has to see the waits of every thread.
std::mutex mutex;
std::list<Wait> waits;
std::optional<Wait> failure;
std::atomic<Index> step = -1;

}  // namespace

Waiting::Waiting(Wait wait) {
  const std::lock_guard lock(mutex);
  entry_ = waits.insert(waits.end(), std::move(wait));
}

Waiting::~Waiting() {
  const std::lock_guard lock(mutex);
  waits.erase(entry_);
}

std::optional<Wait> longest_wait() {
  const std::lock_guard lock(mutex);
  const auto longest = std::ranges::min_element(waits, {}, &Wait::since);
  return longest == waits.end() ? std::nullopt : std::optional(*longest);
}

void note_failure(Wait wait) {
  const std::lock_guard lock(mutex);
  if (!failure) failure = std::move(wait);
}

std::optional<Wait> failed_wait() {
  const std::lock_guard lock(mutex);
  return failure;
}

void set_step(Index value) { step = value; }
Index step_now() { return step; }

}  // namespace kzero
