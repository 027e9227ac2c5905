// A stand-in for cp.async: copies take place when the thread that began them waits for them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace kzero::kernels {

/// Copies that a thread began and has not waited for: what a kernel reads too early is stale.
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
    pending.push_back(copy);
  }
  static void wait() {
    for (const Copy& copy : pending) {
      if (copy.is_there) {
        std::memcpy(copy.to, copy.from, copy.bytes);
      } else {
        std::memset(copy.to, 0, copy.bytes);
      }
    }
    pending.clear();
  }

  static inline std::vector<Copy> pending;  // of the thread or the fiber that runs
};

}  // namespace kzero::kernels
