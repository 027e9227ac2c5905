#include "base/waited.hpp"

#include <algorithm>
#include <chrono>

namespace kzero {

namespace {

using Clock = std::chrono::steady_clock;

struct Waited {
  CoreDelay delay;
  int depth = 0;
  Clock::time_point since{};
  double delayed = 0;  // seconds without a core before the wait, of this thread and its helper
  WaitedSeconds sum{};

  double delay_with(const CoreDelay* helper) const {
    return delay.seconds() + (helper != nullptr ? helper->seconds() : 0);
  }
};

thread_local Waited waited;

}  // namespace

CountedWait::CountedWait(const CoreDelay* helper) : helper_(helper) {
  if (waited.depth++ > 0) return;
  waited.delayed = waited.delay_with(helper_);
  waited.since = Clock::now();
}

CountedWait::~CountedWait() {
  if (--waited.depth > 0) return;
  const std::chrono::duration<double> passed = Clock::now() - waited.since;
  const double delayed = waited.delay_with(helper_) - waited.delayed;
  waited.sum.all += passed.count();
  waited.sum.without_core += std::clamp(delayed, 0.0, passed.count());
}

WaitedSeconds seconds_waited() { return waited.sum; }

}  // namespace kzero
