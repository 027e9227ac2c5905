// The moving average of the weights, compared with a plain loop in fp64.
#include "optim/kinds.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/exact_sum.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"
#include "support/same_bits.hpp"

namespace kzero::optim {
namespace {

using tests::Guarded;
using tests::numbers;

constexpr Index average_count = 7 * 997 + 5;

param::Table averaged_table() {
  return {{"unit",
           {{"matrix", {997, 7}, param::Init::normal, 1, true},
            {"vector", {5}, param::Init::zeros, 0, false}}}};
}

deck::Optimizer averaged_settings(double decay) {
  deck::Optimizer o;
  o.kind = deck::OptimizerKind::sgd;
  o.ema = decay;
  return o;
}

/// SGD with an average, on arrays of a device or of the host.
template <class T>
struct AveragedRun {
  explicit AveragedRun(double decay) : optimizer(make_optimizer(averaged_settings(decay))) {}

  /// Updates [begin, end), in pieces of `piece` elements.
  void update(Index number, double lr, Index piece = average_count) {
    for (Index begin = 0; begin < average_count; begin += piece) {
      const Share<T> share{
          &table[0],
          &layout.unit(0),
          begin,
          std::min(average_count, begin + piece),
          gradient.data() + begin,
          parameters.data() + begin,
          {master.data() + begin, momentum.data() + begin, average.data() + begin}};
      optimizer->update({}, {lr, number, 0.5}, share);
    }
  }

  const param::Table table = averaged_table();
  const param::FlatLayout layout{table, 1};
  std::unique_ptr<const Optimizer> optimizer;
  const Guarded<T> gradient{numbers<T>(average_count, 3)}, parameters{average_count};
  const Guarded<float> master{numbers<float>(average_count, 1)};
  const Guarded<float> momentum{std::vector<float>(average_count, 0.0F)};
  const Guarded<float> average{std::vector<float>(average_count, 0.0F)};
};

template <class T>
class Average : public testing::Test {};
using AveragePrecisions = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(Average, AveragePrecisions, );

TYPED_TEST(Average, IsAPlainLoop) {
  using T = TypeParam;
  constexpr double decay = 0.75;
  AveragedRun<T> run(decay), plain(0), cut(decay);
  EXPECT_EQ(run.optimizer->state().back().name, param::averaged_weights);
  EXPECT_EQ(run.optimizer->kind(), "sgd");
  std::vector<double> expected;
  for (const float w : run.master.host()) expected.push_back(w);
  for (Index number = 1; number <= 4; ++number) {
    run.update(number, 0.1);
    plain.update(number, 0.1);
    cut.update(number, 0.1, 31);
    const auto weights = run.master.host(), average = run.average.host();
    EXPECT_TRUE(tests::same_bits(weights, plain.master.host())) << "the weights do not know of it";
    EXPECT_TRUE(tests::same_bits(average, cut.average.host()));
    for (Index i = 0; i < average_count; ++i) {
      expected[i] = decay * expected[i] + (1 - decay) * static_cast<double>(weights[i]);
      ASSERT_NEAR(average[i], expected[i], tests::gamma(3 * number) * 4) << number << ' ' << i;
    }
  }
  EXPECT_TRUE(tests::same_bits(run.parameters.host(), plain.parameters.host()));
}

// (1 - decay) is not a number of fp32. With factors decay and (1 - decay), 2000 steps would move
// the average by 3e-5 of the weight.
TYPED_TEST(Average, OfConstantWeightsIsTheirs) {
  AveragedRun<TypeParam> run(0.9999);
  for (Index number = 1; number <= 2000; ++number) run.update(number, 0);
  EXPECT_TRUE(tests::same_bits(run.average.host(), run.master.host()));
}

TYPED_TEST(Average, OnTheHostIsTheSame) {
  using T = TypeParam;
  AveragedRun<T> run(0.75);
  auto g = numbers<T>(average_count, 3);
  std::vector<float> w = numbers<float>(average_count, 1), m(average_count), e(average_count);
  std::vector<T> p(average_count);
  for (Index number = 1; number <= 3; ++number) {
    run.update(number, 0.1);
    const Share<T> share{&run.table[0], &run.layout.unit(0),           0, average_count, g.data(),
                         p.data(),      {w.data(), m.data(), e.data()}};
    run.optimizer->update(tensor::HostCores(), {0.1, number, 0.5}, share);
  }
  const auto average = run.average.host();
  for (Index i = 0; i < average_count; ++i)
    ASSERT_NEAR(e[i], average[i], tests::gamma(12) * 4) << i;
  if constexpr (tensor::on_host) {
    EXPECT_TRUE(tests::same_bits(e, average));
  }
}

// LAMB's first pass changes no weights, so the average must not move then either.
TEST(AverageOfTwoPasses, MovesOnceAStep) {
  deck::Optimizer settings = averaged_settings(0.75);
  settings.kind = deck::OptimizerKind::lamb;
  const auto optimizer = make_optimizer(settings);
  ASSERT_EQ(optimizer->passes(), 2);
  const param::Table table = averaged_table();
  const param::FlatLayout layout(table, 1);
  const std::vector<float> zeros(average_count);
  const Guarded<float> gradient(numbers<float>(average_count, 3)), parameters(average_count),
      master(numbers<float>(average_count, 1)), first(zeros), second(zeros), average(zeros);
  const Guarded<std::uint64_t> sums(
      std::vector<std::uint64_t>(4 * kernels::ExactSum::words_of_sum));  // two of two parameters
  Share<float> share{&table[0],
                     &layout.unit(0),
                     0,
                     average_count,
                     gradient.data(),
                     parameters.data(),
                     {master.data(), first.data(), second.data(), average.data()}};
  share.adds = sums.data();
  Update update{0.1, 2, 0.5};
  optimizer->update({}, update, share);
  EXPECT_TRUE(tests::same_bits(average.host(), zeros));
  const std::vector<std::uint64_t> added = sums.host();
  share.adds = nullptr, share.sums = added.data();
  update.pass = 1;
  optimizer->update({}, update, share);
  std::vector<float> expected = master.host();
  EXPECT_FALSE(tests::same_bits(expected, numbers<float>(average_count, 1)));
  for (float& weight : expected) weight *= 0.25F;
  EXPECT_TRUE(tests::same_bits(average.host(), expected));
}

}  // namespace
}  // namespace kzero::optim
