// Compares AdEMAMix with a plain loop in fp64, and its schedules with the paper's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "optim/kinds.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"

namespace kzero::optim {
namespace {

using tests::Guarded;
using tests::numbers;

deck::Optimizer ademamix_settings() {
  deck::Optimizer o;
  o.kind = deck::OptimizerKind::ademamix;
  o.beta1 = 0.9, o.beta2 = 0.99, o.eps = 1e-6, o.weight_decay = 0.25;
  o.beta3 = 0.999, o.alpha = 8, o.slow_warmup = 20;
  return o;
}

TEST(AdEMAMixSchedules, AreThoseOfThePaper) {
  const deck::Optimizer o = ademamix_settings();
  const double first = std::log(o.beta1), last = std::log(o.beta3);
  for (const Index t : {1, 7, 19, 20, 21, 1000}) {
    const double share = std::min(1.0, static_cast<double>(t) / 20);
    EXPECT_NEAR(slow_alpha(o, t), 8 * share, 1e-12) << t;
    const double beta = std::exp(first * last / ((1 - share) * last + share * first));
    EXPECT_NEAR(slow_beta(o, t), beta, 1e-12) << t;
  }
  EXPECT_EQ(slow_alpha(o, 20), o.alpha);
  EXPECT_EQ(slow_beta(o, 20), o.beta3);
  // Half-lives: 6.6 updates of beta1, 692.8 of beta3. In the middle of the warm-up their mean.
  EXPECT_NEAR(std::log(0.5) / std::log(slow_beta(o, 10)),
              (std::log(0.5) / first + std::log(0.5) / last) / 2, 1e-9);
}

TEST(AdEMAMixSchedules, AreAlsoDefinedAtTheirEnds) {
  deck::Optimizer o = ademamix_settings();
  o.slow_warmup = 0;
  EXPECT_EQ(slow_alpha(o, 1), o.alpha);
  EXPECT_EQ(slow_beta(o, 1), o.beta3);
  o.slow_warmup = 20, o.beta1 = 0;
  EXPECT_NEAR(slow_beta(o, 10), std::pow(o.beta3, 2), 1e-12) << "half of the half-life";
  o.beta3 = 0;
  EXPECT_EQ(slow_beta(o, 10), 0);
}

param::Table ademamix_table(Index rows) {
  return {{"unit",
           {{"matrix", {rows, 7}, param::Init::normal, 1, true},
            {"vector", {5}, param::Init::zeros, 0, false}}}};
}

template <class T>
struct AdEMAMixUnit {
  explicit AdEMAMixUnit(Index rows)
      : table(ademamix_table(rows)),
        layout(table, 1),
        count(7 * rows + 5),
        master(numbers<float>(count, 1)),
        first(numbers<float>(count, 2, 0.1)),
        second(std::vector<float>(static_cast<std::size_t>(count), 0.01F)),
        slow(numbers<float>(count, 4, 0.1)),
        gradient(numbers<T>(count, 3)),
        parameters(count) {}

  void update(const Update& step, Index begin, Index end, const Place& place = {}) const {
    make_optimizer(ademamix_settings())
        ->update(place, step,
                 Share<T>{&table[0],
                          &layout.unit(0),
                          begin,
                          end,
                          gradient.data() + begin,
                          parameters.data() + begin,
                          {master.data() + begin, first.data() + begin, second.data() + begin,
                           slow.data() + begin}});
  }

  param::Table table;
  param::FlatLayout layout;
  Index count;
  Guarded<float> master, first, second, slow;
  Guarded<T> gradient, parameters;
};

template <class T>
class AdEMAMixOf : public testing::Test {};
using AdEMAMixPrecisions = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(AdEMAMixOf, AdEMAMixPrecisions, );

TYPED_TEST(AdEMAMixOf, IsItsFormula) {
  using T = TypeParam;
  const deck::Optimizer o = ademamix_settings();
  for (const Index t : {3, 30}) {
    for (const Index rows : {1, 109, 997}) {
      const AdEMAMixUnit<T> unit(rows);
      const auto w = unit.master.host(), m = unit.first.host(), v = unit.second.host(),
                 s = unit.slow.host();
      const auto g = unit.gradient.host();
      unit.update({0.01, t, 0.5}, 0, unit.count);
      const auto master = unit.master.host(), first = unit.first.host(),
                 second = unit.second.host(), slow = unit.slow.host();
      const auto parameters = unit.parameters.host();
      const double b3 = slow_beta(o, t), number = static_cast<double>(t);
      for (Index i = 0; i < unit.count; ++i) {
        const double gi = 0.5 * tests::as_double(g[i]);
        const double mi = o.beta1 * m[i] + (1 - o.beta1) * gi,
                     vi = o.beta2 * v[i] + (1 - o.beta2) * gi * gi, si = b3 * s[i] + (1 - b3) * gi;
        const double both = mi / (1 - std::pow(o.beta1, number)) + slow_alpha(o, t) * si;
        const double step = 0.01 * both / (std::sqrt(vi / (1 - std::pow(o.beta2, number))) + o.eps);
        const double kept = i < 7 * rows ? 1 - 0.01 * o.weight_decay : 1;
        // As in the test of AdamW; alpha multiplies the roundings of the slow moment by up to 8.
        ASSERT_NEAR(first[i], mi, tests::gamma(12));
        ASSERT_NEAR(second[i], vi, tests::gamma(12));
        ASSERT_NEAR(slow[i], si, tests::gamma(12));
        ASSERT_NEAR(master[i], w[i] * kept - step,
                    2 * tests::gamma(12) + 8 * 2e3 * tests::u * 0.01);
        ASSERT_EQ(tests::as_double(parameters[i]), tests::as_double(static_cast<T>(master[i])));
      }
    }
  }
}

TYPED_TEST(AdEMAMixOf, OfPartsIsThatOfTheWhole) {
  using T = TypeParam;
  const AdEMAMixUnit<T> whole(109), cut(109);
  whole.update({0.01, 3, 0.5}, 0, whole.count);
  for (Index begin = 0; begin < cut.count; begin += 31)
    cut.update({0.01, 3, 0.5}, begin, std::min(cut.count, begin + 31));
  EXPECT_TRUE(tests::same_bits(cut.master.host(), whole.master.host()));
  EXPECT_TRUE(tests::same_bits(cut.first.host(), whole.first.host()));
  EXPECT_TRUE(tests::same_bits(cut.second.host(), whole.second.host()));
  EXPECT_TRUE(tests::same_bits(cut.slow.host(), whole.slow.host()));
  EXPECT_TRUE(tests::same_bits(cut.parameters.host(), whole.parameters.host()));
}

// A slow average of a constant gradient is the gradient. With beta3 and 1 - beta3 in fp32 it would
// be off by 2^-25 / 1e-4.
TEST(AdEMAMixSlowMoment, OfAConstantGradientIsTheGradient) {
  AdEMAMixUnit<float> unit(1);
  unit.slow.set(std::vector<float>(12, 0.25F));
  unit.gradient.set(std::vector<float>(12, 0.5F));
  for (Index t = 21; t < 2000; ++t) unit.update({1e-6, t, 0.5}, 0, unit.count);
  for (const float value : unit.slow.host()) EXPECT_EQ(value, 0.25F);
}

TEST(AdEMAMixDeclaration, IsMasterWeightsAndThreeMoments) {
  const auto optimizer = make_optimizer(ademamix_settings());
  EXPECT_EQ(optimizer->kind(), "ademamix");
  EXPECT_EQ(optimizer->state(),
            (param::StateArrays{{"master"}, {"first_moment"}, {"second_moment"}, {"slow_moment"}}));
  EXPECT_EQ(param::bytes_per_element(optimizer->state()), 16);
}

}  // namespace
}  // namespace kzero::optim
