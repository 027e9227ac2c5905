// Compares products of small host matrices with plain loops in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/host/product.hpp"
#include "support/numbers.hpp"

namespace kzero::kernels {

using tests::as_double;
using tests::numbers;

struct ProductCase {
  Index m, n, k;
  bool transposed, adds;
};

inline std::string describe(const ProductCase& c) {
  return std::to_string(c.m) + " x " + std::to_string(c.n) + " x " + std::to_string(c.k) +
         (c.transposed ? " transposed" : "") + (c.adds ? " adds" : "");
}

inline std::vector<float> elements(std::type_identity<float>, Index count, unsigned seed) {
  return numbers<float>(count, seed);
}
inline std::vector<Bf16Pair> elements(std::type_identity<Bf16Pair>, Index count, unsigned seed) {
  const auto halves = numbers<bf16>(2 * count, seed);
  std::vector<Bf16Pair> pairs;
  for (Index i = 0; i < count; ++i) pairs.push_back({halves[2 * i], halves[2 * i + 1]});
  return pairs;
}

/// The terms of an element, as products of its factors.
inline std::vector<double> terms(float a, float b) { return {as_double(a) * as_double(b)}; }
inline std::vector<double> terms(Bf16Pair a, Bf16Pair b) {
  return {as_double(a.first) * as_double(b.first), as_double(a.second) * as_double(b.second)};
}

/// Checks multiply(HostProduct<E>), for A B or C += A B. The rows of C have gaps of two elements,
/// those of B gaps of one. No gap may change.
template <class E, class Multiply>
void check_product(const ProductCase& c, const Multiply& multiply) {
  const Index b_stride = c.n + 1, c_stride = c.n + 2;
  const std::type_identity<E> type;
  const auto a = elements(type, c.m * c.k, 1), b = elements(type, c.k * b_stride, 2);
  auto before = numbers<float>((c.m + 1) * c_stride, 3);
  if (!c.adds) before.assign(before.size(), std::numeric_limits<float>::quiet_NaN());
  std::vector<float> result = before;
  const Strided<E> strided{a.data(), c.transposed ? 1 : c.k, c.transposed ? c.m : 1};
  multiply(
      HostProduct<E>{c.m, c.n, c.k, strided, b.data(), b_stride, result.data(), c_stride, c.adds});
  std::vector<float> values;
  std::vector<tests::Bounded> expected;
  for (Index i = 0; i < c.m; ++i) {
    for (Index j = 0; j < c.n; ++j) {
      const double old = c.adds ? as_double(before[i * c_stride + j]) : 0;
      double sum = old, size = std::abs(old);
      for (Index k = 0; k < c.k; ++k) {
        for (const double term :
             terms(a[i * strided.row + k * strided.column], b[k * b_stride + j])) {
          sum += term;
          size += std::abs(term);
        }
      }
      values.push_back(result[i * c_stride + j]);
      expected.push_back({sum, tests::gamma(depth<E> * c.k + 1) * size});
      before[i * c_stride + j] = values.back();
    }
  }
  tests::expect_close(values, expected, describe(c));
  EXPECT_EQ(std::memcmp(result.data(), before.data(), result.size() * sizeof(float)), 0)
      << "wrote beyond C, " << describe(c);
}

}  // namespace kzero::kernels
