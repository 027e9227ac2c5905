// The time that threads of this process spend waiting for other ranks. Code that communicates marks
// its waits. The sums tell how busy a rank is.
#pragma once

namespace kzero {

// The time for which a thread was ready to run but had no core: other processes had it, or the
// limit of a control group was reached.

/// Reads the kernel's accounting of the thread that constructs it. Uses no memory beyond the
/// object; a reading costs half a microsecond.
class CoreDelay {
 public:
  CoreDelay();
  ~CoreDelay();
  CoreDelay(const CoreDelay&) = delete;
  CoreDelay& operator=(const CoreDelay&) = delete;

  /// Seconds since the thread began; 0 where the kernel keeps no such account. Any thread may call
  /// this while the measured thread lives.
  double seconds() const;

 private:
  int descriptor_;
};

/// Counts its lifetime as time that the calling thread waits for other ranks. If such objects nest,
/// only the outermost counts. Allocates no memory; costs a few microseconds.
class CountedWait {
 public:
  /// `helper` measures the thread that moves this thread's messages in the meantime; null if there
  /// is none.
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

/// Returns the time that the calling thread has waited for other ranks since it began. A wait in
/// progress is not included.
WaitedSeconds seconds_waited();

}  // namespace kzero
