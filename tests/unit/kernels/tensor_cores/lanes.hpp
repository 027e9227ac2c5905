// The instructions of tile_product_cuda.hpp on hosts, as documented by PTX. 32 fibers simulate the
// lanes of a warp and meet at a barrier in each instruction.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "unit/kernels/tensor_cores/pending_copies.hpp"
#include "unit/kernels/tensor_cores/turns.hpp"

namespace kzero::kernels {

/// A value that a lane passes to the other lanes of its warp by an instruction, not through memory.
/// ThreadSanitizer must neither check its order nor derive an order from it.
template <class T>
class Shown {
 public:
  Shown& operator=(T value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  operator T() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<T> value_{};
};

/// The values that the lanes of one warp exchange.
struct Warp {
  LaneMeeting meeting{32};
  std::array<Shown<const std::uint16_t*>, 32> rows;
  std::array<std::array<Shown<std::uint32_t>, 6>, 32> factors;
  std::array<Shown<float>, 32> values;
};

inline std::vector<Warp>* warps_of_team = nullptr;

struct LaneInstructions {
  static Warp& warp() { return (*warps_of_team)[Fibers::number() / 32]; }
  static int lane() { return Fibers::number() % 32; }

  /// ldmatrix.x4: from row l / 4 of each matrix, lane l gets element 2 (l % 4) and the next.
  static void load(std::uint32_t (&x)[4], const void* row) {
    show(row);
    for (int m = 0; m < 4; ++m)
      std::memcpy(&x[m], warp().rows[8 * m + lane() / 4] + lane() % 4 * 2, 4);
    warp().meeting.arrive_and_wait();
  }

  /// ldmatrix.x4.trans: the same for the transposed matrices.
  static void load_transposed(std::uint32_t (&x)[4], const void* row) {
    show(row);
    for (int m = 0; m < 4; ++m) {
      const int first = 8 * m + lane() % 4 * 2;
      x[m] = warp().rows[first][lane() / 4] | std::uint32_t{warp().rows[first + 1][lane() / 4]}
                                                  << 16;
    }
    warp().meeting.arrive_and_wait();
  }

  /// mma.m16n8k16: a [16,16], b [16,8], sum [16,8] in the fragments documented by PTX.
  template <class T>
  static void multiply_add(float* sum, const std::uint32_t (&a)[4], std::uint32_t b0,
                           std::uint32_t b1) {
    auto& own = warp().factors[lane()];
    for (int i = 0; i < 4; ++i) own[i] = a[i];
    own[4] = b0;
    own[5] = b1;
    warp().meeting.arrive_and_wait();
    for (int i = 0; i < 4; ++i) {
      const int row = lane() / 4 + i / 2 * 8, column = lane() % 4 * 2 + i % 2;
      for (int k = 0; k < 16; ++k) sum[i] += left<T>(row, k) * right<T>(k, column);
    }
    warp().meeting.arrive_and_wait();
  }

  /// cvt.rn.bf16x2 and f16x2: the first value is the lower half.
  template <class T>
  static std::uint32_t pack(float first, float second) {
    return T(first).bits | std::uint32_t{T(second).bits} << 16;
  }

  /// shfl.bfly.
  static float exchange(float x, int mask) {
    warp().values[lane()] = x;
    warp().meeting.arrive_and_wait();
    const float other = warp().values[lane() ^ mask];
    warp().meeting.arrive_and_wait();
    return other;
  }

  static float power_of_two(float x) { return std::exp2(x); }

  template <int bytes>
  static void copy(void* to, const void* from, bool is_there) {
    PendingCopies::begin({to, from, bytes, is_there});
  }
  static void wait_for_copies() { PendingCopies::wait(); }

 private:
  static void show(const void* row) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(row) % 16, 0U) << "ldmatrix: a row is unaligned";
    warp().rows[lane()] = static_cast<const std::uint16_t*>(row);
    warp().meeting.arrive_and_wait();
  }

  template <class T>
  static float half_of(std::uint32_t pair, int which) {
    const auto bits = static_cast<std::uint16_t>(pair >> (16 * which));
    T value;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    return static_cast<float>(value);
  }

  // Register i of four: rows from 8 (i % 2), k from 8 (i / 2).
  template <class T>
  static float left(int row, int k) {
    const auto& owner = warp().factors[row % 8 * 4 + k % 8 / 2];
    return half_of<T>(owner[row / 8 + k / 8 * 2], k % 2);
  }
  template <class T>
  static float right(int k, int column) {
    return half_of<T>(warp().factors[column * 4 + k % 8 / 2][4 + k / 8], k % 2);
  }
};

/// Runs the lanes of `warps` warps at the same time.
inline void run_warps(int warps, const std::function<void(int)>& part) {
  std::vector<Warp> shared(warps);
  warps_of_team = &shared;
  Fibers::run(32 * warps, part);
  warps_of_team = nullptr;
}

/// Runs `threads` lanes, 32 at a time, one warp after another.
inline void run_lanes(int threads, const std::function<void(int)>& part) {
  for (int first = 0; first < threads; first += 32)
    run_warps(1, [&](int thread) { part(first + thread); });
}

}  // namespace kzero::kernels
