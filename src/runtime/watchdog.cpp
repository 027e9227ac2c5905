#include "runtime/watchdog.hpp"

#include <algorithm>

namespace kzero::runtime {

namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds longest_pause{5};  // between looks; a look costs nothing

}  // namespace

Watchdog::Watchdog(double seconds, std::function<void(const Wait&)> alarm)
    : limit_(seconds), alarm_(std::move(alarm)) {
  if (seconds > 0) thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::watch() {
  const Seconds pause = std::min(longest_pause, limit_ / 10);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, pause, [this] { return stopping_; })) {
    const auto wait = longest_wait();
    if (!wait || std::chrono::steady_clock::now() - wait->since < limit_) continue;
    alarm_(*wait);
    return;
  }
}

}  // namespace kzero::runtime
