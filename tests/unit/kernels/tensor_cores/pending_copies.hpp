// A stand-in for cp.async. A copy takes place when the thread that started it waits for it. Until
// then its destination holds NaN.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "unit/kernels/tensor_cores/turns.hpp"

namespace kzero::kernels {

/// The copies that a thread has started and not waited for. A kernel that reads too early gets
/// stale values.
struct PendingCopies {
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
    bool is_there;
  };

  static void begin(const Copy& copy) {
    const auto at = [&](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % copy.bytes; };
    EXPECT_EQ(at(copy.to), 0U) << "cp.async: an unaligned place";
    EXPECT_EQ(at(copy.from), 0U) << "cp.async: an unaligned source";
    std::memset(copy.to, 0xFF, copy.bytes);  // a device may write from here on
    of_thread().push_back(copy);
  }
  static void wait() {
    for (const Copy& copy : of_thread()) {
      if (copy.is_there) {
        std::memcpy(copy.to, copy.from, copy.bytes);
      } else {
        std::memset(copy.to, 0, copy.bytes);
      }
    }
    of_thread().clear();
  }

  static bool is_none() { return of_thread().empty(); }

 private:
  static std::vector<Copy>& of_thread() {
    if (Fibers::number() >= 0) return of_fibers.at(Fibers::number());
    thread_local std::vector<Copy> of_others;
    return of_others;
  }

  static inline std::array<std::vector<Copy>, 128> of_fibers;
};

}  // namespace kzero::kernels
