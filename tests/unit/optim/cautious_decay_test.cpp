// Weight decay with optimizer.cautious_decay is that without it at the elements whose update moves
// the weight towards 0, and none at all others, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "optim/optimizer.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"

namespace kzero::optim {
namespace {

using tests::Guarded;
using tests::numbers;

constexpr Index cautious_count = 7 * 109;

/// The weights after one update of a matrix whose first elements have neither gradient nor moments.
/// The first weight is 0.
std::vector<float> updated_weights(const deck::Optimizer& deck, bool is_hidden) {
  param::Table table{{"unit", {{"matrix", {109, 7}, param::Init::normal, 1, true}}}};
  table[0].params[0].matrices = is_hidden ? 1 : 0;
  const param::FlatLayout layout(table, 1);
  const auto with_zeros = [](std::vector<float> values) {
    std::fill(values.begin(), values.begin() + 5, 0.0F);
    return values;
  };
  std::vector<float> weights = numbers<float>(cautious_count, 1);
  weights[0] = 0;
  const Guarded<float> master(weights), gradient(with_zeros(numbers<float>(cautious_count, 3)));
  const Guarded<float> moment(with_zeros(numbers<float>(cautious_count, 2, 0.1)));
  const Guarded<float> slow(with_zeros(numbers<float>(cautious_count, 4, 0.1)));
  const Guarded<float> second(std::vector<float>(cautious_count, 0.01F));
  const Share<float> share{&table[0],
                           &layout.unit(0),
                           0,
                           cautious_count,
                           gradient.data(),
                           master.data(),
                           {master.data(), moment.data(), second.data(), slow.data()}};
  make_optimizer(deck)->update({}, {0.01, 3, 0.5}, share);
  return master.host();
}

void expect_cautious(deck::Optimizer deck, bool is_hidden, const std::string& name) {
  deck.weight_decay = 0;
  const auto none = updated_weights(deck, is_hidden);
  deck.weight_decay = 0.25;
  const auto all = updated_weights(deck, is_hidden);
  deck.cautious_decay = true;
  const auto cautious = updated_weights(deck, is_hidden);
  std::vector<float> before = numbers<float>(cautious_count, 1);
  before[0] = 0;
  Index decayed = 0, kept = 0;
  for (Index i = 0; i < cautious_count; ++i) {
    const bool leaves_zero =
        (before[i] > 0 && none[i] > before[i]) || (before[i] < 0 && none[i] < before[i]);
    EXPECT_EQ(cautious[i], leaves_zero ? none[i] : all[i]) << name << ' ' << i;
    (leaves_zero ? kept : decayed) += 1;
    if (!leaves_zero && i > 0) {
      EXPECT_NE(all[i], none[i]) << name << ' ' << i;
    }
  }
  EXPECT_GT(decayed, cautious_count / 4) << name;
  EXPECT_GT(kept, cautious_count / 4) << name;
}

TEST(CautiousDecay, LeavesWeightsThatMoveAwayFromZero) {
  using deck::OptimizerKind;
  for (const auto& [name, kind, meaning] : deck::optimizers) {
    if (kind == OptimizerKind::lamb || kind == OptimizerKind::adafactor) continue;
    if (kind == OptimizerKind::normuon) continue;  // normuon_test.cpp
    deck::Optimizer deck;
    deck.kind = kind;
    deck.beta1 = 0.9, deck.beta2 = 0.99, deck.momentum = 0.8, deck.eps = 1e-6;
    deck.slow_warmup = 4;
    expect_cautious(deck, false, std::string(name));
    if (kind == OptimizerKind::muon) expect_cautious(deck, true, "muon's matrices");
  }
}

}  // namespace
}  // namespace kzero::optim
