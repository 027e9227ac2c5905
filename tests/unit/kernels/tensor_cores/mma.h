// A stand-in for nvcuda::wmma on hosts, so that the code for tensor cores runs in tests: one thread
// plays a warp and holds whole fragments. It checks what the real one demands without checking: the
// alignment of tiles and their strides. Only what tile_product_cuda.hpp uses is here. The real
// fragments spread over threads in a way that is not documented, so these lie in no order either.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "base/float16.hpp"

struct __half {
  std::uint16_t bits;
};
struct __nv_bfloat16 {
  std::uint16_t bits;
};

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

namespace detail {

inline float value_of(float x) { return x; }
inline float value_of(__half x) { return kzero::detail::fp16_value(x.bits); }
inline float value_of(__nv_bfloat16 x) { return kzero::detail::bf16_value(x.bits); }

/// Where element (i,j) of any fragment lies: a permutation, as 77 is odd.
inline int place(int i, int j) { return ((i * 16 + j) * 77 + 31) % 256; }

template <class E>
void check(const E* data, unsigned stride) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 32, 0U) << "a fragment begins unaligned";
  EXPECT_EQ(stride % (sizeof(E) == 4 ? 4 : 8), 0U);
  EXPECT_GE(stride, 16U);
}

}  // namespace detail

template <class Use, int m, int n, int k, class E, class Layout = void>
struct fragment {
  static_assert(m == 16 && n == 16 && k == 16);
  static constexpr int num_elements = 256;
  E x[num_elements];

  E& at(int i, int j) { return x[detail::place(i, j)]; }
  const E& at(int i, int j) const { return x[detail::place(i, j)]; }
};

using Sum = fragment<accumulator, 16, 16, 16, float>;

inline void fill_fragment(Sum& f, float value) {
  for (float& x : f.x) x = value;
}

template <class Use, class E>
void load_matrix_sync(fragment<Use, 16, 16, 16, E, row_major>& f, const E* data, unsigned stride) {
  detail::check(data, stride);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) f.at(i, j) = data[i * stride + j];
  }
}

template <class Use, class E>
void load_matrix_sync(fragment<Use, 16, 16, 16, E, col_major>& f, const E* data, unsigned stride) {
  detail::check(data, stride);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) f.at(i, j) = data[j * stride + i];
  }
}

inline void load_matrix_sync(Sum& f, const float* data, unsigned stride, layout_t layout) {
  detail::check(data, stride);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j)
      f.at(i, j) = layout == mem_row_major ? data[i * stride + j] : data[j * stride + i];
  }
}

inline void store_matrix_sync(float* data, const Sum& f, unsigned stride, layout_t layout) {
  detail::check(data, stride);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j)
      (layout == mem_row_major ? data[i * stride + j] : data[j * stride + i]) = f.at(i, j);
  }
}

template <class E, class LayoutA, class LayoutB>
void mma_sync(Sum& d, const fragment<matrix_a, 16, 16, 16, E, LayoutA>& a,
              const fragment<matrix_b, 16, 16, 16, E, LayoutB>& b, const Sum& c) {
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      float total = c.at(i, j);
      for (int k = 0; k < 16; ++k)
        total += detail::value_of(a.at(i, k)) * detail::value_of(b.at(k, j));
      d.at(i, j) = total;
    }
  }
}

}  // namespace nvcuda::wmma
