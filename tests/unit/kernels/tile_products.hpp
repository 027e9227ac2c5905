// Checks a class with the interface of kernels/device/tile_product.hpp against plain loops.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/attention/head_tile.hpp"
#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

/// A tile [rows,columns] of numbers, aligned like a team's scratch memory.
template <class T>
class OwnTile {
 public:
  OwnTile(int rows, int columns, std::uint64_t seed)
      : columns_(columns),
        stride_(stride_of(columns, sizeof(T))),
        storage_(numbers<T>(rows * stride_ + 32, seed)) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    first_ = (32 - address % 32) % 32 / sizeof(T);
  }

  Tile<T> tile() { return {storage_.data() + first_, stride_}; }
  Tile<const T> tile() const { return {storage_.data() + first_, stride_}; }
  double at(int i, int j) const { return tests::as_double(tile()(i, j)); }

 private:
  int columns_, stride_;
  std::vector<T> storage_;
  std::size_t first_;
};

/// Runs the parts of `threads` threads one after another.
inline void run_threads(int threads, const std::function<void(int)>& part) {
  for (int thread = 0; thread < threads; ++thread) part(thread);
}

/// Runs the parts of one product: A1 B1^T, then the scaling of rows, then A2 B2 for the columns in
/// use. Compares with plain loops.
template <template <class, int, int, int> class GemmProblem, class T, int rows, int columns,
          int threads>
void check_product(int depth, int used, decltype(run_threads)* run = run_threads) {
  const OwnTile<T> a1(rows, depth, 1), b1(columns, depth, 2), a2(rows, depth, 3),
      b2(depth, columns, 4);
  OwnTile<float> factors(rows, 16, 5), result(rows, columns, 6);
  const OwnTile<float>& f = factors;
  run(threads, [&](int thread) {
    GemmProblem<T, rows, columns, threads> product(thread);
    product.add_transposed(a1.tile(), b1.tile(), depth);
    product.scale_rows(f.tile());
    product.add(a2.tile(), b2.tile(), depth, used);
    product.store(result.tile());
  });
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      double value = 0, size = 0;
      for (int k = 0; k < depth; ++k) {
        const double first = f.at(i, 0) * a1.at(i, k) * b1.at(j, k);
        const double second = a2.at(i, k) * b2.at(k, j);
        if (j < used) value += second;
        value += first;
        size += std::abs(first) + std::abs(second);
      }
      if (j >= used) continue;
      ASSERT_NEAR(result.at(i, j), value, gamma(2 * depth + 1) * size) << i << ' ' << j;
    }
  }
}

}  // namespace kzero::kernels
