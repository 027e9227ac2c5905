#include "tensor/tile.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/numbers.hpp"

namespace kzero::tensor {

namespace {

using tests::as_double;
using tests::numbers;

constexpr float alpha = 0.3F;

/// c = alpha op(a) op(b) + beta c at one size, C's rows two elements apart.
void check(Index m, Index n, Index k, Transpose ta, Transpose tb, float beta) {
  const auto a = numbers<float>(m * k, 1), b = numbers<float>(k * n, 2);
  const Index a_stride = ta == Transpose::no ? k : m, b_stride = tb == Transpose::no ? n : k;
  const Index c_stride = n + 2;
  auto before = numbers<float>((m + 1) * c_stride, 3);  // and a row that is not C's
  if (beta == 0) before.assign(before.size(), std::numeric_limits<float>::quiet_NaN());
  std::vector<float> result = before;  // tiles are the host's, whatever the device
  multiply_tile(ta, tb, m, n, k, alpha, a.data(), a_stride, b.data(), b_stride, beta, result.data(),
                c_stride);
  std::vector<float> values;
  std::vector<tests::Bounded> expected;
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (Index l = 0; l < k; ++l) {
        const double product =
            as_double(a[ta == Transpose::no ? i * a_stride + l : l * a_stride + i]) *
            as_double(b[tb == Transpose::no ? l * b_stride + j : j * b_stride + l]);
        sum += product;
        size += std::abs(product);
      }
      const double old = beta == 0 ? 0 : as_double(beta) * as_double(before[i * c_stride + j]);
      values.push_back(result[i * c_stride + j]);
      // k products and sums, the factors alpha and beta, and the last sum.
      expected.push_back({as_double(alpha) * sum + old,
                          tests::gamma(k + 3) * (as_double(alpha) * size + std::abs(old))});
    }
  }
  tests::expect_close(values, expected, std::to_string(m) + " x " + std::to_string(n));
  for (Index i = 0; i <= m; ++i) {
    for (Index j = i < m ? n : 0; j < c_stride; ++j) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(result[i * c_stride + j]),
                std::bit_cast<std::uint32_t>(before[i * c_stride + j]));
    }
  }
}

TEST(MultiplyTile, MatchesThePlainLoop) {
  for (const Transpose ta : {Transpose::no, Transpose::yes}) {
    for (const Transpose tb : {Transpose::no, Transpose::yes}) {
      for (const float beta : {0.0F, 1.0F, -0.5F}) {
        check(1, 1, 1, ta, tb, beta);
        check(7, 5, 3, ta, tb, beta);
        check(128, 129, 33, ta, tb, beta);
      }
    }
  }
}

}  // namespace

}  // namespace kzero::tensor
