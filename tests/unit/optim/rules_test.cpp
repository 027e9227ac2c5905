// Compares the update of each optimizer kind with a plain loop in fp64.
#include <gtest/gtest.h>

#include <algorithm>

#include "optim/optimizer.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"
#include "support/same_bits.hpp"

namespace kzero::optim {
namespace {

using tests::Guarded;
using tests::numbers;

/// A matrix of rows x 7 elements, which decays, before a vector of 5, which does not.
param::Table rule_table(Index rows) {
  return {{"unit",
           {{"matrix", {rows, 7}, param::Init::normal, 1, true},
            {"vector", {5}, param::Init::zeros, 0, false}}}};
}

/// The state of one element, in fp64.
struct Element {
  double weight = 0, momentum = 0;
};

using Expected = Element (*)(const deck::Optimizer&, const Update&, Element, double g, bool decays);

double kept(const deck::Optimizer& o, const Update& u, bool decays) {
  return decays ? 1 - u.lr * o.weight_decay : 1;
}

Element sgd(const deck::Optimizer& o, const Update& u, Element e, double g, bool decays) {
  e.momentum = o.momentum * e.momentum + g;
  const double d = o.nesterov ? g + o.momentum * e.momentum : e.momentum;
  e.weight = e.weight * kept(o, u, decays) - u.lr * d;
  return e;
}

Element lion(const deck::Optimizer& o, const Update& u, Element e, double g, bool decays) {
  const double c = o.beta1 * e.momentum + (1 - o.beta1) * g;
  const double sign = c > 0 ? 1 : c < 0 ? -1 : 0;
  e.weight = e.weight * kept(o, u, decays) - u.lr * sign;
  e.momentum = o.beta2 * e.momentum + (1 - o.beta2) * g;
  return e;
}

struct RuleCase {
  const char* name;
  deck::Optimizer deck;
  Expected expected;
};

deck::Optimizer settings_of(deck::OptimizerKind kind, bool nesterov = false) {
  deck::Optimizer o;
  o.kind = kind;
  o.beta1 = 0.9, o.beta2 = 0.99, o.momentum = 0.8, o.weight_decay = 0.25;
  o.nesterov = nesterov;
  return o;
}

const RuleCase rule_cases[] = {{"sgd", settings_of(deck::OptimizerKind::sgd), sgd},
                               {"nesterov", settings_of(deck::OptimizerKind::sgd, true), sgd},
                               {"lion", settings_of(deck::OptimizerKind::lion), lion}};

constexpr Update rule_step{0.01, 3, 0.5};

template <class T>
Share<T> share_of(const param::Table& table, const param::FlatLayout& layout, Index begin,
                  Index end, const T* gradient, T* parameters, float* master, float* momentum) {
  return {&table[0],
          &layout.unit(0),
          begin,
          end,
          gradient + begin,
          parameters + begin,
          {master + begin, momentum + begin}};
}

template <class T>
class Rules : public testing::Test {};
using RulePrecisions = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(Rules, RulePrecisions, );

// Rows that give 12, 768 and 7 * 997 + 5 elements: less than a vector register, several registers,
// and more than one thread or team processes.
TYPED_TEST(Rules, AreTheirFormulas) {
  using T = TypeParam;
  for (const RuleCase& one : rule_cases) {
    const auto optimizer = make_optimizer(one.deck);
    EXPECT_EQ(param::bytes_per_element(optimizer->state()), 8) << one.name;
    for (const Index rows : {1, 109, 997}) {
      const param::Table table = rule_table(rows);
      const param::FlatLayout layout(table, 1);
      const Index count = 7 * rows + 5;
      const auto w = numbers<float>(count, 1), m = numbers<float>(count, 2, 0.1);
      const auto g = numbers<T>(count, 3);
      const Guarded<float> master(w), momentum(m);
      const Guarded<T> gradient(g), parameters(count);
      optimizer->update({}, rule_step,
                        share_of(table, layout, 0, count, gradient.data(), parameters.data(),
                                 master.data(), momentum.data()));
      const auto masters = master.host(), momenta = momentum.host();
      const auto rounded = parameters.host();
      for (Index i = 0; i < count; ++i) {
        const Element e =
            one.expected(one.deck, rule_step, {w[i], m[i]},
                         0.5 * static_cast<double>(static_cast<float>(g[i])), i < 7 * rows);
        // Few roundings of numbers near 1.
        EXPECT_NEAR(masters[i], e.weight, tests::gamma(6) * 2) << one.name << ' ' << i;
        EXPECT_NEAR(momenta[i], e.momentum, tests::gamma(6) * 2) << one.name << ' ' << i;
        EXPECT_EQ(static_cast<float>(rounded[i]), static_cast<float>(static_cast<T>(masters[i])));
      }
    }
  }
}

TYPED_TEST(Rules, OfPartsAreThoseOfTheWhole) {
  using T = TypeParam;
  const Index count = 7 * 109 + 5;
  const param::Table table = rule_table(109);
  const param::FlatLayout layout(table, 1);
  const Guarded<T> gradient(numbers<T>(count, 3));
  for (const RuleCase& one : rule_cases) {
    const auto optimizer = make_optimizer(one.deck);
    const Guarded<float> master(numbers<float>(count, 1)), momentum(numbers<float>(count, 2));
    const Guarded<float> cut_master(master.host()), cut_momentum(momentum.host());
    const Guarded<T> parameters(count), cut(count);
    optimizer->update({}, rule_step,
                      share_of(table, layout, 0, count, gradient.data(), parameters.data(),
                               master.data(), momentum.data()));
    for (Index begin = 0; begin < count; begin += 31) {
      optimizer->update({}, rule_step,
                        share_of(table, layout, begin, std::min(count, begin + 31), gradient.data(),
                                 cut.data(), cut_master.data(), cut_momentum.data()));
    }
    EXPECT_TRUE(tests::same_bits(cut_master.host(), master.host())) << one.name;
    EXPECT_TRUE(tests::same_bits(cut_momentum.host(), momentum.host())) << one.name;
    EXPECT_TRUE(tests::same_bits(cut.host(), parameters.host())) << one.name;
  }
}

// Within rounding on device builds, bit for bit if the host is the device.
TYPED_TEST(Rules, OnTheHostAreTheSame) {
  using T = TypeParam;
  const Index count = 7 * 997 + 5;
  const param::Table table = rule_table(997);
  const param::FlatLayout layout(table, 1);
  auto g = numbers<T>(count, 3);
  const Guarded<T> gradient(g);
  for (const RuleCase& one : rule_cases) {
    const auto optimizer = make_optimizer(one.deck);
    std::vector<float> w = numbers<float>(count, 1), m = numbers<float>(count, 2);
    std::vector<T> p(static_cast<std::size_t>(count));
    const Guarded<float> master(w), momentum(m);
    const Guarded<T> parameters(count);
    optimizer->update({}, rule_step,
                      share_of(table, layout, 0, count, gradient.data(), parameters.data(),
                               master.data(), momentum.data()));
    optimizer->update_on_host(
        rule_step, share_of(table, layout, 0, count, g.data(), p.data(), w.data(), m.data()));
    const auto masters = master.host();
    for (Index i = 0; i < count; ++i) {
      EXPECT_NEAR(w[i], masters[i], tests::gamma(6) * 2) << one.name;
      EXPECT_EQ(static_cast<float>(p[i]), static_cast<float>(static_cast<T>(w[i]))) << one.name;
    }
    if constexpr (tensor::on_host) {
      EXPECT_TRUE(tests::same_bits(w, masters)) << one.name;
      EXPECT_TRUE(tests::same_bits(m, momentum.host())) << one.name;
    }
  }
}

TEST(LionRule, MakesNoStepWhereTheSumIsZero) {
  const param::Table table = rule_table(1);
  const param::FlatLayout layout(table, 1);
  deck::Optimizer deck = settings_of(deck::OptimizerKind::lion);
  const Guarded<float> gradient(std::vector<float>(12, 0.0F)), master(std::vector<float>(12, 2.0F)),
      momentum(std::vector<float>(12, 0.0F));
  make_optimizer(deck)->update({}, rule_step,
                               share_of(table, layout, 0, 12, gradient.data(), master.data(),
                                        master.data(), momentum.data()));
  EXPECT_EQ(master.host()[11], 2.0F) << "does not decay";
  EXPECT_NEAR(master.host()[0], 2 * (1 - 0.01 * 0.25), 1e-6);
}

}  // namespace
}  // namespace kzero::optim
