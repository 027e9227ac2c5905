#include "optim/optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.hpp"
#include "optim/cpu_offload.hpp"
#include "support/guarded.hpp"
#include "support/launches.hpp"
#include "support/numbers.hpp"

namespace kzero::optim {
namespace {

using tests::Guarded;
using tests::numbers;

TEST(GradientScale, UnscalesAlwaysAndClipsAboveTheLimitOnly) {
  EXPECT_EQ(gradient_scale(0.5, 1, 1), 1);
  EXPECT_EQ(gradient_scale(1, 1, 1), 1);
  EXPECT_EQ(gradient_scale(4, 1, 1), 0.25);
  EXPECT_EQ(gradient_scale(4, 0, 1), 1) << "clip = 0 does not clip";
  EXPECT_EQ(gradient_scale(4, 1, 1024), 0.25 / 1024);
  EXPECT_EQ(gradient_scale(0.5, 1, 1024), 1.0 / 1024);
  EXPECT_EQ(gradient_scale(0, 1, 2), 0.5) << "a zero gradient";
}

/// A unit with a matrix, which decays, between two vectors, which do not.
param::Table table() {
  return {{"unit",
           {{"before", {5}, param::Init::zeros, 0, false},
            {"matrix", {3, 7}, param::Init::normal, 1, true},
            {"after", {4}, param::Init::zeros, 0, false}}}};
}

deck::Optimizer settings() {
  deck::Optimizer o;
  o.beta1 = 0.9, o.beta2 = 0.99, o.eps = 1e-6, o.weight_decay = 0.25;
  return o;
}

/// All state of a unit of 30 elements.
struct Unit {
  Guarded<float> master{numbers<float>(30, 1)}, first{numbers<float>(30, 2, 0.1)};
  Guarded<float> second{std::vector<float>(30, 0.01F)}, gradient{numbers<float>(30, 3)};
};

void update_range(const Unit& unit, const param::FlatLayout& layout, Index begin, Index end,
                  Index updates) {
  const param::Table specs = table();
  const Share<float> share{
      &specs[0],
      &layout.unit(0),
      begin,
      end,
      unit.gradient.data() + begin,
      unit.master.data() + begin,
      {unit.master.data() + begin, unit.first.data() + begin, unit.second.data() + begin}};
  make_optimizer(settings())->update({}, {0.01, updates, 0.5}, share);
}

TEST(Update, IsAdamWWithDecayOnMatricesAlone) {
  const Unit unit;
  const auto w = unit.master.host(), m = unit.first.host(), v = unit.second.host(),
             g = unit.gradient.host();
  const deck::Optimizer o = settings();
  update_range(unit, param::FlatLayout(table(), 1), 0, 30, 7);
  for (Index i = 0; i < 30; ++i) {
    const double gi = 0.5 * g[i];
    const double mi = o.beta1 * m[i] + (1 - o.beta1) * gi,
                 vi = o.beta2 * v[i] + (1 - o.beta2) * gi * gi;
    const double decay = i >= 5 && i < 26 ? 1 - 0.01 * o.weight_decay : 1;
    const double step = 0.01 * mi / (1 - std::pow(o.beta1, 7)) /
                        (std::sqrt(vi / (1 - std::pow(o.beta2, 7))) + o.eps);
    // A dozen fp32 roundings of numbers up to 1. beta and the corrections are also rounded to fp32.
    // 1 - beta2 and 1 - beta2^7 are differences with a relative error of 2^-24 / 0.01.
    const double error = tests::gamma(12) + 2e3 * tests::u * 0.01;
    EXPECT_NEAR(unit.first.host()[i], mi, error);
    EXPECT_NEAR(unit.second.host()[i], vi, error);
    EXPECT_NEAR(unit.master.host()[i], w[i] * decay - step, error);
  }
}

TEST(Update, OfPartsIsTheUpdateOfTheWhole) {
  const Unit whole, cut;
  const param::FlatLayout layout(table(), 4);
  update_range(whole, layout, 0, 30, 3);
  for (Index r = 0; r < 4; ++r)
    update_range(cut, layout, r * 8, std::min<Index>(30, (r + 1) * 8), 3);
  EXPECT_TRUE(tests::same_bits(whole.master.host(), cut.master.host()));
  EXPECT_TRUE(tests::same_bits(whole.first.host(), cut.first.host()));
  EXPECT_TRUE(tests::same_bits(whole.second.host(), cut.second.host()));
}

TEST(Update, IsOneLaunchForAllParametersOfAUnit) {
  const Unit unit;
  const tests::Launches launches;
  update_range(unit, param::FlatLayout(table(), 1), 0, 30, 1);
  EXPECT_EQ(launches.count(), 1);
}

TEST(Update, In16BitsKeepsMasterWeightsInFp32AndRoundsTheParameters) {
  const Unit unit;
  const param::Table specs = table();
  const param::FlatLayout layout(specs, 1);
  const Guarded<bf16> gradient(numbers<bf16>(30, 3));
  const Guarded<bf16> parameters(std::vector<bf16>(30, static_cast<bf16>(9.0F)));
  const auto before = unit.master.host();
  const Share<bf16> share{&specs[0],
                          &layout.unit(0),
                          0,
                          30,
                          gradient.data(),
                          parameters.data(),
                          {unit.master.data(), unit.first.data(), unit.second.data()}};
  make_optimizer(settings())->update({}, {1e-6, 1, 1}, share);
  const auto after = unit.master.host();
  for (Index i = 0; i < 30; ++i) {
    EXPECT_EQ(static_cast<float>(parameters.host()[i]),
              static_cast<float>(static_cast<bf16>(after[i])));
  }
  EXPECT_NE(before, after) << "a step below bf16's resolution moves the master weights";
}

TEST(Declaration, OfAdamWIsMasterWeightsAndTwoMoments) {
  const auto optimizer = make_optimizer(settings());
  EXPECT_EQ(optimizer->state(),
            (param::StateArrays{{"master"}, {"first_moment"}, {"second_moment"}}));
  EXPECT_EQ(param::bytes_per_element(optimizer->state()), 12) << "K of the ZeRO paper";
}

TEST(Declaration, OfAnOptimizerThatThereIsNotIsRefused) {
  deck::Optimizer deck;
  deck.kind = static_cast<deck::OptimizerKind>(99);
  EXPECT_THROW(make_optimizer(deck), Error);
}

// State in host memory, gradient and parameters on the device. Copies of a few elements at a time.
TEST(CpuOffloadOptimizer, IsTheUpdateOnTheDevice) {
  const Unit unit;
  const param::Table specs = table();
  const param::FlatLayout layout(specs, 2);
  const Guarded<bf16> gradient(numbers<bf16>(30, 3)), expected(30), parameters(30);
  std::vector<float> w = unit.master.host(), m = unit.first.host(), v = unit.second.host();
  const auto optimizer = make_optimizer(settings());
  const Update step{0.01, 3, 0.5};
  for (const auto& [begin, end] : {std::pair<Index, Index>{0, 15}, {15, 30}}) {
    Share<bf16> share{
        &specs[0],
        &layout.unit(0),
        begin,
        end,
        gradient.data() + begin,
        expected.data() + begin,
        {unit.master.data() + begin, unit.first.data() + begin, unit.second.data() + begin}};
    optimizer->update({}, step, share);
    share.parameters = parameters.data() + begin;
    share.state = {w.data() + begin, m.data() + begin, v.data() + begin};
    memory::Arenas measuring;
    static_cast<void>(CpuOffloadOptimizer<bf16>(measuring, 28));
    memory::Ledger ledger;
    memory::Arenas arenas(measuring, ledger);
    EXPECT_GT(ledger.now(memory::Category::offloaded), 0);
    CpuOffloadOptimizer<bf16>(arenas, 28).apply({}, *optimizer, step, share);
  }
  const auto device = unit.master.host();
  for (Index i = 0; i < 30; ++i) {
    EXPECT_NEAR(w[i], device[i], 2 * tests::gamma(12));
    EXPECT_EQ(static_cast<float>(parameters.host()[i]),
              static_cast<float>(static_cast<bf16>(w[i])));
  }
  if constexpr (tensor::on_host) {
    EXPECT_TRUE(tests::same_bits(w, device));
    EXPECT_TRUE(tests::same_bits(m, unit.first.host()));
    EXPECT_TRUE(tests::same_bits(v, unit.second.host()));
  }
}

}  // namespace
}  // namespace kzero::optim
