#include "kernels/exponential.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/numbers.hpp"

namespace kzero::kernels {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Floats with magnitudes from `low` to `high`, of both signs, in steps of a prime number.
template <class F>
void sweep(float low, float high, const F& f) {
  for (auto bits = std::bit_cast<std::uint32_t>(low); bits <= std::bit_cast<std::uint32_t>(high);
       bits += 577) {
    f(std::bit_cast<float>(bits));
    f(-std::bit_cast<float>(bits));
  }
}

double relative_error(float actual, double expected) {
  return std::abs(static_cast<double>(actual) - expected) / std::abs(expected);
}

TEST(Exponential, KeepsTheErrorItStates) {
  sweep(0, 87, [&](float x) {
    ASSERT_LT(relative_error(exponential(x), std::exp(x * 1.0)), tests::host_exponential_error)
        << x;
  });
}

TEST(Exponential, IsExactAtZero) {
  EXPECT_EQ(exponential(0.0F), 1.0F);
  EXPECT_EQ(exponential(-0.0F), 1.0F);
  EXPECT_EQ(exponential(std::numeric_limits<float>::denorm_min()), 1.0F);
}

TEST(Exponential, GivesZeroInsteadOfSubnormals) {
  EXPECT_GE(exponential(-87.0F), std::numeric_limits<float>::min());
  for (const float x : {std::nextafter(-87.0F, -88.0F), -88.0F, -103.0F, -1e30F, -infinity}) {
    EXPECT_EQ(exponential(x), 0.0F) << x;
  }
}

TEST(Exponential, SaturatesAboveEightyEight) {
  EXPECT_LT(relative_error(exponential(88.0F), std::exp(88.0)), tests::host_exponential_error);
  for (const float x : {88.5F, 1000.0F, infinity})
    EXPECT_EQ(exponential(x), exponential(88.0F)) << x;
}

TEST(Exponential, KeepsNan) {
  EXPECT_TRUE(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace

}  // namespace kzero::kernels
