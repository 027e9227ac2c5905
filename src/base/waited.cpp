#include "base/waited.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>

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

CoreDelay::CoreDelay() : descriptor_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}

CoreDelay::~CoreDelay() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

/// The file contains nanoseconds on a core, nanoseconds ready but without a core, and a count.
double CoreDelay::seconds() const {
  std::array<char, 96> text{};
  const auto size = ::pread(descriptor_, text.data(), text.size(), 0);
  if (size <= 0) return 0;
  const char *const begin = text.data(), *const end = begin + size;
  const char* const blank = std::find(begin, end, ' ');
  std::uint64_t nanoseconds = 0;
  if (blank != end) std::from_chars(blank + 1, end, nanoseconds);
  return 1e-9 * static_cast<double>(nanoseconds);
}

}  // namespace kzero
