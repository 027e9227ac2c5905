// The time for which a thread was ready to run but had no core: other processes had it, or the
// limit of a control group was reached.
#pragma once

namespace kzero {

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

}  // namespace kzero
