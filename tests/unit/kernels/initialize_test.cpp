#include "kernels/initialize.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.hpp"
#include "kernels/normal.hpp"
#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

using tests::as_double;

std::vector<float> draw(std::uint64_t seed, std::uint64_t parameter, Index first, Index count,
                        float std = 1) {
  const Guarded<float> x(count);
  draw_normal(Execution(), seed, parameter, {0, 0, first, count}, std, x.vector());
  return x.host();
}

// The Box-Muller formula in double, from the same words.
TEST(DrawNormal, IsTheFormulasNumber) {
  const Index n = 200'003;
  const auto drawn = draw(42, 7, 0, n);
  for (Index i = 0; i < n; ++i) {
    const Philox4 words = philox(42, static_cast<std::uint64_t>(i / 2), 7);
    // Near 1 the rounding of the uniform number changes the radius by up to 3e-4.
    const double u = (static_cast<float>(words.word[0]) + 0.5F) * 0x1.0p-32F;
    const double angle = words.word[1] * 0x1.0p-31 * M_PI;
    const double radius = std::sqrt(-2 * std::log(u));
    const double expected = radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
    ASSERT_LT(std::abs(drawn[i] - expected), 1e-6) << i;
  }
}

TEST(NormalPair, OfTheOutermostWordsIsFinite) {
  constexpr std::uint32_t max = 0xFFFFFFFFU;
  const Pair<float> far = normal_pair<float>(0, 0), near = normal_pair<float>(max, max);
  EXPECT_NEAR(far.first, std::sqrt(66 * std::log(2.0)), 1e-6);  // u = 2^-33
  EXPECT_EQ(far.second, 0);
  EXPECT_EQ(near.first, 0);  // u rounds to 1
  EXPECT_EQ(near.second, 0);
}

TEST(Logarithm, AgreesWithTheLibrarys) {
  for (float x = 1e-30F; x < 1e30F; x *= 1.0007F)
    ASSERT_NEAR(logarithm(x), std::log(double{x}), 3e-7 * std::abs(std::log(double{x}))) << x;
}

TEST(DrawUniform, IsTheWordsNumberInBoundsForEveryPart) {
  constexpr Index n = 10'007;
  constexpr float bound = 0.25F;
  const Guarded<float> all(n);
  draw_uniform(Execution(), 42, 7, {0, n, 0, n}, bound, all.vector());
  const auto drawn = all.host();
  double sum = 0, squares = 0;
  for (Index i = 0; i < n; ++i) {
    const Philox4 words = philox(42, static_cast<std::uint64_t>(i / 4), 7);
    const double expected = bound * (std::floor(words.word[i % 4] / 256.0) * 0x1p-23 - 1);
    ASSERT_EQ(drawn[i], static_cast<float>(expected)) << i;
    ASSERT_TRUE(drawn[i] >= -bound && drawn[i] < bound) << i;
    sum += drawn[i] / bound, squares += drawn[i] / bound * (drawn[i] / bound);
  }
  EXPECT_NEAR(sum / n, 0, 6 / std::sqrt(3.0 * n));
  EXPECT_NEAR(squares / n, 1.0 / 3, 6 * std::sqrt(4.0 / 45 / n));
  // Columns 3 to 4 of rows of 7, from the second element of row 1 on.
  const Guarded<float> part(9);
  draw_uniform(Execution(), 42, 7, {3, 7, 3, 2}, bound, part.vector());
  const auto of_columns = part.host();
  for (Index i = 0; i < 9; ++i)
    EXPECT_EQ(of_columns[i], drawn[(3 + i) / 2 * 7 + 3 + (3 + i) % 2]) << i;
}

// For n independent standard normal numbers the mean has the standard deviation sqrt(1/n), the mean
// square sqrt(2/n), and the mean fourth power, which is 3, sqrt(96/n). Six standard deviations
// occur by chance once in 5 * 10^8 seeds. The seed is fixed.
TEST(DrawNormal, HasTheMomentsOfANormalLaw) {
  const Index n = 1'000'003;
  const double count = static_cast<double>(n);
  double first = 0, second = 0, fourth = 0, neighbours = 0, before = 0;
  for (const float value : draw(42, 7, 0, n)) {
    const double x = as_double(value);
    first += x / count;
    second += x * x / count;
    fourth += x * x * x * x / count;
    neighbours += x * before / count;
    before = x;
  }
  EXPECT_LT(std::abs(first), 6 * std::sqrt(1 / count));
  EXPECT_LT(std::abs(second - 1), 6 * std::sqrt(2 / count));
  EXPECT_LT(std::abs(fourth - 3), 6 * std::sqrt(96 / count));
  EXPECT_LT(std::abs(neighbours), 6 * std::sqrt(1 / count)) << "neighbours are correlated";
}

TEST(DrawNormal, DoesNotDependOnWhereTheChunksBegin) {
  const Index n = 257;
  const auto whole = draw(1, 2, 0, n);
  for (const Index cut : {1, 64, 128, 256}) {
    auto chunks = draw(1, 2, 0, cut);
    for (const float x : draw(1, 2, cut, n - cut)) chunks.push_back(x);
    EXPECT_TRUE(tests::same_bits(chunks, whole)) << cut;
  }
}

TEST(DrawNormal, OfBlocksIsThatOfTheWhole) {
  const Index stride = 37, blocks = 5;
  const auto whole = draw(1, 2, 0, stride * blocks);
  for (const Index begin : {0, 1, 18}) {
    for (const Index length : {1, 2, 19, 37}) {
      if (begin + length > stride) continue;
      std::vector<float> wanted;
      for (Index b = 0; b < blocks; ++b) {
        const auto from = whole.begin() + b * stride + begin;
        wanted.insert(wanted.end(), from, from + length);
      }
      const Index all = blocks * length;
      for (const Index first : {Index{0}, length / 2, all - 1}) {
        const Guarded<float> x(all - first);
        draw_normal(Execution(), 1, 2, {first, stride, begin, length}, 1, x.vector());
        EXPECT_TRUE(tests::same_bits(x.host(), {wanted.begin() + first, wanted.end()}))
            << length << " from " << begin << ", without the first " << first;
      }
    }
  }
}

TEST(DrawNormal, DiffersBySeedAndParameter) {
  const auto base = draw(1, 2, 0, 64);
  for (const auto& other : {draw(2, 2, 0, 64), draw(1, 3, 0, 64), draw(2, 1, 0, 64)}) {
    int equal = 0;
    for (std::size_t i = 0; i < base.size(); ++i) equal += base[i] == other[i];
    EXPECT_EQ(equal, 0);
  }
}

TEST(DrawNormal, ScalesByTheDeviation) {
  const auto base = draw(1, 2, 0, 1000), scaled = draw(1, 2, 0, 1000, 0.02F);
  std::vector<Bounded> expected;
  for (const float x : base) {
    // Both round the product with the cosine. Only one rounds the product with the deviation.
    expected.push_back({0.02F * as_double(x), gamma(3) * std::abs(0.02F * as_double(x))});
  }
  expect_close(scaled, expected, "std 0.02");
}

template <class T>
class Initialize : public testing::Test {};
TYPED_TEST_SUITE(Initialize, Elements, );

TYPED_TEST(Initialize, FillWritesEveryElement) {
  for (const Index count : widths) {
    const Guarded<TypeParam> x(count);
    fill<TypeParam>(Execution(), x.vector(), 0.1F);
    for (const TypeParam value : x.host()) EXPECT_EQ(as_double(value), as_double(TypeParam(0.1F)));
  }
}

TYPED_TEST(Initialize, RoundToRoundsEveryElement) {
  for (const Index count : widths) {
    const auto from = numbers<float>(count, 3, 100);
    const Guarded<float> input(from);
    const Guarded<TypeParam> output(count);
    round_to<TypeParam>(Execution(), input.vector(), output.vector());
    const auto to = output.host();
    for (Index i = 0; i < count; ++i) EXPECT_EQ(as_double(to[i]), as_double(TypeParam(from[i])));
  }
}

}  // namespace

}  // namespace kzero::kernels
