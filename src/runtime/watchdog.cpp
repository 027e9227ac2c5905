#include "runtime/watchdog.hpp"

#include <algorithm>
#include <utility>

namespace kzero::runtime {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds longest_pause{5};  // between polls; a poll costs nothing

}  // namespace

Watchdog::Watchdog(double seconds, Alarm alarm)
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
  Clock::time_point looked = Clock::now(), since{};
  Seconds waited{0};
  std::unique_lock lock(mutex_);
  do {
    const Clock::time_point before = std::exchange(looked, Clock::now());
    if (const auto failed = failed_wait()) return alarm_(*failed, Seconds(0));
    const auto wait = longest_wait();
    if (!wait || !has_limit) continue;
    // A gap between two polls is time in which this process did not run: it was suspended.
    const Seconds since_look = looked - std::max(before, wait->since);
    waited =
        std::min<Seconds>(since_look, 2 * pause) + (wait->since == since ? waited : Seconds(0));
    since = wait->since;
    if (waited >= limit_) return alarm_(*wait, waited);
  } while (!changed_.wait_for(lock, pause, [this] { return stopping_; }));
}

}  // namespace kzero::runtime
