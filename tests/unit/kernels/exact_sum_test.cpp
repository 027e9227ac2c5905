#include "kernels/exact_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace kzero::kernels {
namespace {

double exact_sum_of(const std::vector<float>& values) {
  ExactSum sum;
  for (const float value : values) sum.add(value);
  return sum.value();
}

/// Values of every fp32 exponent, including subnormals.
std::vector<float> values_of_all_sizes(std::size_t count) {
  std::mt19937 random(7);
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(std::ldexp(std::uniform_real_distribution<float>(0.5F, 1)(random),
                                static_cast<int>(random() % 276) - 148));
  return values;
}

TEST(ExactSum, OfOneValueIsTheValue) {
  using Limits = std::numeric_limits<float>;
  for (const float value : {0.0F, 1.0F, 0.1F, 3e10F, Limits::denorm_min(), 5 * Limits::denorm_min(),
                            Limits::min(), std::nextafter(Limits::min(), 0.0F), Limits::max()})
    EXPECT_EQ(exact_sum_of({value}), static_cast<double>(value)) << value;
}

TEST(ExactSum, RoundsNothingAway) {
  // fp64 cannot represent 2^60 + 2^-149, but it can represent its difference from 2^60.
  ExactSum sum;
  sum.add(0x1p60F);
  for (int i = 0; i < 3; ++i) sum.add(0x1p-149F);
  EXPECT_EQ(sum.word[0], 3U);
  EXPECT_EQ(sum.value(), 0x1p60);
  EXPECT_EQ(exact_sum_of(std::vector<float>(1 << 20, 0.1F)), static_cast<double>(0.1F) * (1 << 20));
}

TEST(ExactSum, DependsNeitherOnOrderNorOnGrouping) {
  std::vector<float> values = values_of_all_sizes(10000);
  const double expected = exact_sum_of(values);
  std::mt19937 random(11);
  for (const std::size_t groups : {1, 2, 3, 64}) {
    std::shuffle(values.begin(), values.end(), random);
    std::vector<ExactSum> parts(groups);
    for (std::size_t i = 0; i < values.size(); ++i)
      parts[i * groups / values.size()].add(values[i]);
    ExactSum all;
    for (ExactSum& part : parts) {
      if (groups > 2) part.carry();
      all += part;
    }
    EXPECT_EQ(all.value(), expected) << groups;
  }
}

TEST(ExactSum, IsWithinARoundingOfLongArithmetic) {
  const auto values = values_of_all_sizes(1000);
  long double expected = 0;
  auto sorted = values;
  std::ranges::sort(sorted);
  for (const float value : sorted) expected += value;
  EXPECT_NEAR(exact_sum_of(values) / static_cast<double>(expected), 1, 1e-15);
}

TEST(ExactSum, IsNotANumberIfAValueIsNotFinite) {
  for (const float bad : {INFINITY, std::numeric_limits<float>::quiet_NaN()})
    EXPECT_TRUE(std::isnan(exact_sum_of({1, bad, 2})));
}

}  // namespace
}  // namespace kzero::kernels
