// Matrix products of small tiles in a team's scratch, accumulated in fp32 registers. Every thread
// of the team holds its part of the sum. This is plain arithmetic for any back end.
// tensor_core_product.hpp has the same interface on tensor cores.
#pragma once

#include <Kokkos_Macros.hpp>

namespace kzero::kernels {

/// A row-major matrix in scratch, `stride` elements from row to row.
template <class T>
struct Tile {
  T* data;
  int stride;

  KOKKOS_INLINE_FUNCTION T& operator()(int i, int j) const { return data[i * stride + j]; }
};

/// A sum of matrix products [rows,columns], each a multiple of 16, over `threads` threads (1, or a
/// multiple of 16). The caller provides all barriers.
template <class T, int rows, int columns, int threads>
class PlainProduct {
 public:
  KOKKOS_INLINE_FUNCTION explicit PlainProduct(int thread)
      : row_(thread / across), column_(thread % across) {}

  /// Adds A B^T; A [rows,depth], B [columns,depth].
  KOKKOS_INLINE_FUNCTION void add_transposed(const Tile<const T>& a, const Tile<const T>& b,
                                             int depth) {
    for (int k = 0; k < depth; ++k) {
      add_outer([&](int i) { return a(i, k); }, [&](int j) { return b(j, k); });
    }
  }

  /// Adds A B; A [rows,depth], B [depth,columns]. Columns from `used` on may be left out.
  KOKKOS_INLINE_FUNCTION void add(const Tile<const T>& a, const Tile<const T>& b, int depth,
                                  [[maybe_unused]] int used) {
    for (int k = 0; k < depth; ++k) {
      add_outer([&](int i) { return a(i, k); }, [&](int j) { return b(k, j); });
    }
  }

  /// Multiplies row i by factors(i,0).
  KOKKOS_INLINE_FUNCTION void scale_rows(const Tile<const float>& factors) {
    for_own([&](int i, int, float& value) { value *= factors(i, 0); });
  }

  KOKKOS_INLINE_FUNCTION void store(const Tile<float>& to) {
    for_own([&](int i, int j, float value) { to(i, j) = value; });
  }

 private:
  // Neighbouring threads have neighbouring columns. A thread's own columns are `across` apart.
  static constexpr int across = threads < 16 ? threads : 16, down = threads / across;
  static constexpr int own_rows = rows / down, own_columns = columns / across;
  static_assert(own_rows * down == rows && own_columns * across == columns);

  template <class F>
  KOKKOS_INLINE_FUNCTION void for_own(const F& f) {
    for (int i = 0; i < own_rows; ++i) {
      for (int j = 0; j < own_columns; ++j) f(row_ + i * down, column_ + j * across, sum_[i][j]);
    }
  }

  template <class A, class B>
  KOKKOS_INLINE_FUNCTION void add_outer(const A& a, const B& b) {
    float left[own_rows], right[own_columns];
    for (int i = 0; i < own_rows; ++i) left[i] = static_cast<float>(a(row_ + i * down));
    for (int j = 0; j < own_columns; ++j) right[j] = static_cast<float>(b(column_ + j * across));
    for (int i = 0; i < own_rows; ++i) {
      for (int j = 0; j < own_columns; ++j) sum_[i][j] += left[i] * right[j];
    }
  }

  int row_, column_;
  float sum_[own_rows][own_columns] = {};
};

}  // namespace kzero::kernels
