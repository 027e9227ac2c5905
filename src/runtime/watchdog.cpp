#include "runtime/watchdog.hpp"

#include <algorithm>

namespace kzero::runtime {

namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds longest_pause{5};  // between looks; a look costs nothing

}  // namespace

Watchdog::Watchdog(double seconds, std::function<void(const Wait&)> alarm)
    : limit_(seconds), alarm_(std::move(alarm)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::watch() {
  const bool has_limit = limit_ > Seconds(0);
  const Seconds pause = has_limit ? std::min(longest_pause, limit_ / 10) : longest_pause;
  std::unique_lock lock(mutex_);
  do {
    const auto failed = failed_wait();
    const auto wait = failed ? failed : longest_wait();
    if (!wait) continue;
    if (!failed && (!has_limit || std::chrono::steady_clock::now() - wait->since < limit_))
      continue;
    alarm_(*wait);
    return;
  } while (!changed_.wait_for(lock, pause, [this] { return stopping_; }));
}

}  // namespace kzero::runtime
