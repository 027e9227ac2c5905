// A lock for code that is compiled without ThreadSanitizer's instructions.
#pragma once

#include <atomic>
#include <mutex>

namespace kzero::stream_order {

/// Unseen by ThreadSanitizer, to which a lock orders those who take it.
class HiddenLock {
 public:
  void lock() {
    while (taken_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_;
};

}  // namespace kzero::stream_order
