#include "kernels/host_product.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "support/numbers.hpp"

namespace kzero::kernels {

namespace {

using tests::as_double;
using tests::numbers;

struct Case {
  Index m, n, k;
  bool transposed, adds;
};

std::string describe(const Case& c) {
  return std::to_string(c.m) + " x " + std::to_string(c.n) + " x " + std::to_string(c.k) +
         (c.transposed ? " transposed" : "") + (c.adds ? " adds" : "");
}

template <class E>
class HostProductOf : public testing::Test {};
using Operands = testing::Types<float, Bf16Pair>;
TYPED_TEST_SUITE(HostProductOf, Operands, );

std::vector<float> elements(std::type_identity<float>, Index count, unsigned seed) {
  return numbers<float>(count, seed);
}
std::vector<Bf16Pair> elements(std::type_identity<Bf16Pair>, Index count, unsigned seed) {
  const auto halves = numbers<bf16>(2 * count, seed);
  std::vector<Bf16Pair> pairs;
  for (Index i = 0; i < count; ++i) pairs.push_back({halves[2 * i], halves[2 * i + 1]});
  return pairs;
}

/// The products of an element's terms.
std::vector<double> terms(float a, float b) { return {as_double(a) * as_double(b)}; }
std::vector<double> terms(Bf16Pair a, Bf16Pair b) {
  return {as_double(a.first) * as_double(b.first), as_double(a.second) * as_double(b.second)};
}

/// C's rows lie two elements apart, B's one, and nothing between them may change.
template <class E>
void check(const Case& c) {
  const Index b_stride = c.n + 1, c_stride = c.n + 2;
  const std::type_identity<E> type;
  const auto a = elements(type, c.m * c.k, 1), b = elements(type, c.k * b_stride, 2);
  auto before = numbers<float>((c.m + 1) * c_stride, 3);
  if (!c.adds) before.assign(before.size(), std::numeric_limits<float>::quiet_NaN());
  std::vector<float> result = before;
  const Strided<E> strided{a.data(), c.transposed ? 1 : c.k, c.transposed ? c.m : 1};
  multiply<E>({c.m, c.n, c.k, strided, b.data(), b_stride, result.data(), c_stride, c.adds});
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

TYPED_TEST(HostProductOf, MatchesThePlainLoop) {
  for (const Index m : {1, 5, 6, 7, 9, 13, 96}) {
    for (const Index vectors : {1, 2, 3, 4, 5, 9}) {
      for (const Index k : {0, 1, 7, 64}) {
        for (const bool transposed : {false, true})
          for (const bool adds : {false, true})
            check<TypeParam>({m, vectors * host_lanes, k, transposed, adds});
      }
    }
  }
}

// What a tile of rows computes does not depend on which rows it has beside: attention's tiles are
// cut by the mask.
TYPED_TEST(HostProductOf, RowsDoNotDependOnTheirNumber) {
  using E = TypeParam;
  constexpr Index m = 13, n = 4 * host_lanes, k = 37;
  const std::type_identity<E> type;
  const auto a = elements(type, m * k, 1), b = elements(type, k * n, 2);
  std::vector<float> all(m * n), alone(n);
  multiply<E>({m, n, k, {a.data(), k}, b.data(), n, all.data(), n});
  for (Index i = 0; i < m; ++i) {
    multiply<E>({1, n, k, {a.data() + i * k, k}, b.data(), n, alone.data(), n});
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + i * n)) << i;
  }
}

}  // namespace

}  // namespace kzero::kernels
