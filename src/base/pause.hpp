// A pause between two looks at something that a thread waits for. Ranks that share cores must not
// take them from those that they wait for: Linux 6.18 was seen to give two ranks that only yielded
// all of two cores for 45 s, while the two ranks that they waited for never ran.
#pragma once

#include <chrono>
#include <thread>

namespace kzero {

class Pause {
 public:
  /// The first looks only yield, so that a short wait ends at once. The others are 20 us apart.
  void operator()() {
    if (++looks_ < looks_before_sleep) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

 private:
  static constexpr int looks_before_sleep = 100;
  int looks_ = 0;
};

}  // namespace kzero
