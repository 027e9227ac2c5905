// Compares both halves of Muon with plain loops in fp64: the matrix to be orthogonalized, and the
// update from the result.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "optim/cpu_offload.hpp"
#include "optim/optimizer.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"

namespace kzero::optim {
namespace {

using tests::Guarded;
using tests::numbers;

/// A vector of 5, a parameter of rows x 7 elements that stores two matrices, and a matrix of rows x
/// 3 that is not a hidden matrix.
param::Table muon_table(Index rows) {
  param::Table table{{"unit",
                      {{"vector", {5}, param::Init::zeros, 0, false},
                       {"hidden", {rows, 14}, param::Init::normal, 1, true},
                       {"embedding", {rows, 3}, param::Init::normal, 1, true}}}};
  table[0].params[1].matrices = 2;
  return table;
}

deck::Optimizer muon_settings(bool nesterov) {
  deck::Optimizer o;
  o.kind = deck::OptimizerKind::muon;
  o.beta1 = 0.8, o.beta2 = 0.9, o.eps = 1e-6, o.weight_decay = 0.25;
  o.momentum = 0.7, o.nesterov = nesterov;
  return o;
}

/// A share and its memory. The second moment has no elements for the hidden matrices.
template <class T>
struct MuonUnit {
  explicit MuonUnit(Index rows)
      : table(muon_table(rows)),
        layout(table, 1),
        hidden{5, 5 + 14 * rows},
        count(5 + 17 * rows),
        range(table[0], layout.unit(0), {"", param::Extent::all_but_matrices}, 0, count),
        master(numbers<float>(count, 1)),
        momentum(numbers<float>(count, 2, 0.1)),
        second(std::vector<float>(static_cast<std::size_t>(5 + 3 * rows), 0.01F)),
        gradient(numbers<T>(count, 3)),
        parameters(count) {}

  Share<T> share(Index begin, Index end) const {
    State state{master.data(), momentum.data()};
    state.add(second.data(), range);
    return {&table[0],    &layout.unit(0),         begin,
            end,          gradient.data() + begin, parameters.data() + begin,
            state + begin};
  }
  bool is_hidden(Index i) const { return i >= hidden.first && i < hidden.second; }

  param::Table table;
  param::FlatLayout layout;
  std::pair<Index, Index> hidden;
  Index count;
  param::CompactRange range;
  Guarded<float> master, momentum, second;
  Guarded<T> gradient, parameters;
};

template <class T>
class MuonRule : public testing::Test {};
using MuonPrecisions = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(MuonRule, MuonPrecisions, );

constexpr Update muon_step{.lr = 0.01, .number = 3, .gradient_scale = 0.5, .loss_scale = 8};

TYPED_TEST(MuonRule, HandsOverItsMomentumOfHiddenMatricesAlone) {
  using T = TypeParam;
  for (const bool nesterov : {true, false}) {
    const auto optimizer = make_optimizer(muon_settings(nesterov));
    ASSERT_NE(optimizer->matrix_rule(), nullptr);
    for (const Index rows : {1, 31, 997}) {
      const MuonUnit<T> unit(rows);
      const auto m = unit.momentum.host();
      const auto g = unit.gradient.host();
      optimizer->matrix_rule()->prepare({}, muon_step, unit.share(0, unit.count),
                                        unit.gradient.data());
      const auto momentum = unit.momentum.host();
      const auto u = unit.gradient.host();
      for (Index i = 0; i < unit.count; ++i) {
        const double gi = 0.5 * tests::as_double(g[i]);
        if (!unit.is_hidden(i)) {
          ASSERT_EQ(momentum[i], m[i]);
          ASSERT_EQ(tests::as_double(u[i]), tests::as_double(g[i]));
          continue;
        }
        const double mi = 0.7 * m[i] + 0.3 * gi;
        ASSERT_NEAR(momentum[i], mi, tests::gamma(6));
        const auto expected =
            tests::stored<T>(8 * (nesterov ? 0.3 * gi + 0.7 * mi : mi), 8 * tests::gamma(12));
        ASSERT_NEAR(tests::as_double(u[i]), expected.value, expected.error);
      }
    }
  }
}

TYPED_TEST(MuonRule, OfPartsHandsOverWhatTheWholeDoes) {
  using T = TypeParam;
  const auto optimizer = make_optimizer(muon_settings(true));
  const MuonUnit<T> whole(31), cut(31);
  optimizer->matrix_rule()->prepare({}, muon_step, whole.share(0, whole.count),
                                    whole.gradient.data());
  const std::vector<Index> cuts{0, 3, 100, 101, cut.count};
  for (std::size_t i = 1; i < cuts.size(); ++i)
    optimizer->matrix_rule()->prepare({}, muon_step, cut.share(cuts[i - 1], cuts[i]),
                                      cut.gradient.data() + cuts[i - 1]);
  EXPECT_TRUE(tests::same_bits(cut.gradient.host(), whole.gradient.host()));
  EXPECT_TRUE(tests::same_bits(cut.momentum.host(), whole.momentum.host()));
}

TYPED_TEST(MuonRule, UpdatesWithTheScaleOfItsShapeAndAllElseAsAdamW) {
  using T = TypeParam;
  const deck::Optimizer deck = muon_settings(true);
  const auto optimizer = make_optimizer(deck);
  for (const Index rows : {1, 31, 997}) {
    const MuonUnit<T> unit(rows);
    const auto w = unit.master.host(), m = unit.momentum.host(), v = unit.second.host();
    const auto g = unit.gradient.host();
    optimizer->update({}, muon_step, unit.share(0, unit.count));
    const auto master = unit.master.host(), momentum = unit.momentum.host(),
               second = unit.second.host();
    const auto parameters = unit.parameters.host();
    const double scale = 0.2 * std::sqrt(static_cast<double>(std::max<Index>(rows, 7)));
    for (Index i = 0; i < unit.count; ++i) {
      const double kept = i < 5 ? 1 : 1 - 0.01 * 0.25, gi = tests::as_double(g[i]);
      EXPECT_EQ(tests::as_double(parameters[i]), tests::as_double(static_cast<T>(master[i])));
      if (unit.is_hidden(i)) {
        ASSERT_NEAR(master[i], w[i] * kept - 0.01 * scale * gi, 4 * tests::gamma(8));
        ASSERT_EQ(momentum[i], m[i]);
        continue;
      }
      const Index place = i < 5 ? i : i - 14 * rows;
      const double mi = 0.8 * m[i] + 0.2 * 0.5 * gi, vi = 0.9 * v[place] + 0.1 * 0.25 * gi * gi;
      const double step =
          0.01 * mi / (1 - std::pow(0.8, 3)) / (std::sqrt(vi / (1 - std::pow(0.9, 3))) + deck.eps);
      ASSERT_NEAR(momentum[i], mi, tests::gamma(12));
      ASSERT_NEAR(second[place], vi, tests::gamma(12));
      // As in the test of AdamW, but 1 - beta^3 has a smaller relative error here.
      ASSERT_NEAR(master[i], w[i] * kept - step, 2 * tests::gamma(12) + 2e2 * tests::u * 0.01);
    }
  }
}

TEST(MuonIn16Bits, KeepsWhatWouldOverflowFinite) {
  MuonUnit<fp16> unit(1);
  unit.momentum.set(std::vector<float>(static_cast<std::size_t>(unit.count), -3e5F));
  make_optimizer(muon_settings(true))
      ->matrix_rule()
      ->prepare({}, muon_step, unit.share(0, unit.count), unit.gradient.data());
  const auto u = unit.gradient.host();
  for (Index i = unit.hidden.first; i < unit.hidden.second; ++i)
    EXPECT_EQ(tests::as_double(u[i]), -65504);
}

// State in host memory, gradient and parameters on the device. Copies of a few elements at a time.
TEST(MuonOffloaded, IsMuonOnTheDevice) {
  const MuonUnit<bf16> there(31), here(31);
  std::vector<float> w = here.master.host(), m = here.momentum.host(), v = here.second.host();
  const auto optimizer = make_optimizer(muon_settings(true));
  const MatrixRule& rule = *optimizer->matrix_rule();
  rule.prepare({}, muon_step, there.share(0, there.count), there.gradient.data());
  optimizer->update({}, muon_step, there.share(0, there.count));
  memory::Arenas measuring;
  static_cast<void>(CpuOffloadOptimizer<bf16>(measuring, 92));
  memory::Ledger ledger;
  memory::Arenas arenas(measuring, ledger);
  CpuOffloadOptimizer<bf16> offload(arenas, 92);
  Share<bf16> share = here.share(0, here.count);
  share.state = {w.data(), m.data()};
  share.state.add(v.data(), here.range);
  offload.prepare({}, rule, muon_step, share, here.gradient.data());
  offload.apply({}, *optimizer, muon_step, share);
  const auto expected = there.master.host();
  const auto parameters = here.parameters.host();
  for (Index i = 0; i < here.count; ++i) {
    EXPECT_NEAR(w[i], expected[i], 4 * tests::gamma(12));
    EXPECT_EQ(tests::as_double(parameters[i]), tests::as_double(static_cast<bf16>(w[i])));
  }
  if constexpr (tensor::on_host) {
    EXPECT_TRUE(tests::same_bits(w, expected));
    EXPECT_TRUE(tests::same_bits(m, there.momentum.host()));
    EXPECT_TRUE(tests::same_bits(v, there.second.host()));
  }
}

TEST(MuonDeclaration, LeavesOutSecondMomentsOfHiddenMatrices) {
  const auto optimizer = make_optimizer(muon_settings(true));
  const param::StateArrays& arrays = optimizer->state();
  ASSERT_EQ(arrays.size(), 3U);
  const param::Table table = muon_table(2);
  for (const param::ParamSpec& p : table[0].params) {
    EXPECT_TRUE(arrays[0].extends_to(p));
    EXPECT_TRUE(arrays[1].extends_to(p));
    EXPECT_EQ(arrays[2].extends_to(p), p.name != "hidden");
  }
}

}  // namespace
}  // namespace kzero::optim
