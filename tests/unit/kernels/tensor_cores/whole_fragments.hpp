// Replaces kernels/device/warp_fragments.hpp if one thread simulates a warp and holds complete
// fragments. If a warp has several threads, each holds them, and the first stores them. Checks the
// unchecked requirements of the real fragments: the alignment and strides of tiles.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "kernels/device/warp_fragments.hpp"
#include "unit/kernels/tensor_cores/pending_copies.hpp"

namespace kzero::kernels {

template <class T>
struct WholeFragments {
  template <class E>
  struct Fragment {
    E x[16][16];
  };
  struct Left : Fragment<T> {};
  struct Right : Fragment<T> {};
  struct Sum : Fragment<float> {};

  static constexpr int rows = 16, pairs = 128;

  static int row(int, int slot) { return slot; }
  static PairPlace place(int, int pair) { return {pair / 8, pair / 8, pair % 8 * 2}; }
  static bool is_first_in_row(int) { return true; }
  static float* pair(Sum& sum, int number) { return &sum.x[number / 8][number % 8 * 2]; }
  static void round(Left& left, const Sum& sum) {
    for (int i = 0; i < 16; ++i) {
      for (int k = 0; k < 16; ++k) left.x[i][k] = static_cast<T>(sum.x[i][k]);
    }
  }
  static void store_rounded(T* to, float first, float second) {
    to[0] = static_cast<T>(first);
    to[1] = static_cast<T>(second);
  }
  static float largest_in_row(float x) { return x; }
  static float sum_in_row(float x) { return x; }
  static float power_of_two(float x) { return std::exp2(x); }
  template <int bytes>
  static void copy(void* to, const void* from, bool is_there) {
    PendingCopies::begin({to, from, bytes, is_there});
  }
  static void wait_for_copies() { PendingCopies::wait(); }

  static void clear(Sum& sum) { sum = {}; }
  static void load(Left& left, const T* data, int stride, int) { copy(data, stride, left.x); }
  static void load_rows(Right& right, const T* data, int stride, int) {
    copy(data, stride, right.x);
  }
  static void load_columns(Right& right, const T* data, int stride, int) {
    Left columns;
    copy(data, stride, columns.x);
    for (int k = 0; k < 16; ++k) {
      for (int j = 0; j < 16; ++j) right.x[k][j] = columns.x[j][k];
    }
  }
  static void multiply_add(Sum& sum, const Left& a, const Right& b) {
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 16; ++j) {
        for (int k = 0; k < 16; ++k)
          sum.x[i][j] += static_cast<float>(a.x[i][k]) * static_cast<float>(b.x[k][j]);
      }
    }
  }
  static void scale_rows(Sum& sum, const Tile<const float>& factors, int) {
    for (int i = 0; i < 16; ++i) {
      for (float& x : sum.x[i]) x *= factors(i, 0);
    }
  }
  static void store(const Sum& sum, const Tile<float>& to, int lane) {
    check(to.data, to.stride);
    if (lane > 0) return;
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 16; ++j) to(i, j) = sum.x[i][j];
    }
  }

 private:
  template <class E>
  static void check(const E* data, int stride) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 32, 0U) << "a fragment begins unaligned";
    EXPECT_EQ(stride % (sizeof(E) == 4 ? 4 : 8), 0);
    EXPECT_GE(stride, 16);
  }
  static void copy(const T* data, int stride, T (&to)[16][16]) {
    check(data, stride);
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 16; ++j) to[i][j] = data[i * stride + j];
    }
  }
};

}  // namespace kzero::kernels
