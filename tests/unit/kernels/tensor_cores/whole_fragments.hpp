// In place of kernels/warp_fragments.hpp where one thread plays a warp: it holds whole fragments.
// If a warp has several, each does, and the first stores them. It checks what the real ones demand
// without checking: the alignment of tiles and their strides.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/tile_product.hpp"

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
