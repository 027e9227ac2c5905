// The time that threads of this process stand still because of other ranks. The code that
// communicates marks its waits; whoever wants to know how busy a rank is reads the sum.
#pragma once

#include "base/core_delay.hpp"

namespace kzero {

/// Counts its lifetime as time that the calling thread waits for other ranks. If such objects nest,
/// the outermost counts. Takes no memory; costs some microseconds.
class CountedWait {
 public:
  /// `helper` is the account of the thread that moves this thread's messages meanwhile; null: none.
  explicit CountedWait(const CoreDelay* helper = nullptr);
  ~CountedWait();
  CountedWait(const CountedWait&) = delete;
  CountedWait& operator=(const CountedWait&) = delete;

 private:
  const CoreDelay* helper_;
};

struct WaitedSeconds {
  double all = 0;
  double without_core = 0;  // of these, the thread or its helper was ready to run but had no core

  WaitedSeconds operator-(const WaitedSeconds& earlier) const {
    return {all - earlier.all, without_core - earlier.without_core};
  }
};

/// Returns the time that the calling thread has waited for other ranks since it began, without a
/// wait that has not ended.
WaitedSeconds seconds_waited();

}  // namespace kzero
