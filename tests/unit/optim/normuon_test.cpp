// Compares NorMuon's two passes with plain loops in fp64, for outputs along rows and along columns,
// any division of a unit and any split of a parameter over tensor ranks, on hosts only.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "optim/fixed_sum.hpp"
#include "optim/kinds.hpp"
#include "optim/place.hpp"
#include "support/numbers.hpp"
#include "support/same_bits.hpp"

namespace kzero::optim {
namespace {

using param::Axis;
using tests::numbers;

deck::Optimizer normuon_settings() {
  deck::Optimizer o;
  o.kind = deck::OptimizerKind::normuon;
  o.beta1 = 0.8, o.beta2 = 0.9, o.eps = 1e-6, o.weight_decay = 0.25;
  return o;
}

/// A vector, a parameter of `matrices` hidden matrices of rows x columns, and another matrix.
param::Table normuon_table(Index rows, Index columns, Index matrices) {
  param::Table table{{"unit",
                      {{"vector", {5}, param::Init::zeros, 0, false},
                       {"hidden", {rows, matrices * columns}, param::Init::normal, 1, true},
                       {"embedding", {rows, 3}, param::Init::normal, 1, true}}}};
  table[0].params[1].matrices = matrices;
  return table;
}

/// The state of a unit on one rank, with every array on the host. The gradients of hidden matrices
/// take the place of X.
template <class T>
struct NorMuonUnit {
  NorMuonUnit(const param::Table& t, Axis outputs, deck::Optimizer deck = normuon_settings())
      : optimizer(make_optimizer(deck, outputs)),
        table(t),
        layout(table, 1),
        count(layout.unit(0).elements),
        range(table[0], layout.unit(0), {"", param::Extent::all_but_matrices}, 0, count),
        master(numbers<float>(count, 1)),
        momentum(numbers<float>(count, 2, 0.1)),
        second(static_cast<std::size_t>(count), 0.01F),
        gradient(numbers<T>(count, 3)),
        parameters(static_cast<std::size_t>(count)),
        reduced(static_cast<std::size_t>(sum([&](const param::ParamSpec& p) {
          return param::length_of(optimizer->reduced_state(), p.shape);
        }))) {}

  template <class F>
  Index sum(const F& count_of) const {
    return std::accumulate(
        table[0].params.begin(), table[0].params.end(), Index{0},
        [&](Index total, const param::ParamSpec& p) { return total + count_of(p); });
  }

  Share<T> share(Index begin, Index end) {
    State state{master.data(), momentum.data()};
    state.add(second.data(), range);
    return {.spec = &table[0],
            .layout = &layout.unit(0),
            .begin = begin,
            .end = end,
            .gradient = gradient.data() + begin,
            .parameters = parameters.data() + begin,
            .state = state + begin,
            .reduced = reduced.data()};
  }

  /// Updates the output moments from sums over all elements.
  void update_moments(const Update& update, const std::uint64_t* sums) {
    float* kept = reduced.data();
    for (const param::ParamSpec& p : table[0].params) {
      optimizer->update_reduced(update, p, sums, kept);
      sums += optimizer->sum_words(0, p);
      kept += param::length_of(optimizer->reduced_state(), p.shape);
    }
  }

  /// Runs both passes of an update in parts of `length` elements.
  void update(Update update, Index length) {
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(
        sum([&](const param::ParamSpec& p) { return optimizer->sum_words(0, p); })));
    for (update.pass = 0; update.pass < 2; ++update.pass) {
      if (update.pass == 1) update_moments(update, sums.data());
      for (Index begin = 0; begin < count; begin += length) {
        Share<T> part = share(begin, std::min(count, begin + length));
        if (update.pass == 0) part.adds = sums.data();
        if (update.pass == 1) part.sums = sums.data();
        optimizer->update(tensor::HostCores(), update, part);
      }
    }
  }

  const std::unique_ptr<const Optimizer> optimizer;
  const param::Table table;
  const param::FlatLayout layout;
  const Index count;
  const param::CompactRange range;
  std::vector<float> master, momentum, second;
  std::vector<T> gradient, parameters;
  std::vector<float> reduced;
};

/// NorMuon in fp64, for the matrix in columns [first, first + columns) of a parameter of `width`.
struct PlainNorMuon {
  Index rows, columns, width, first;
  Axis outputs;
  std::vector<double> moments =
      std::vector<double>(static_cast<std::size_t>(outputs == Axis::row ? rows : columns));

  std::size_t at(Index i, Index j) const { return static_cast<std::size_t>(i * width + first + j); }
  std::size_t output(Index i, Index j) const {
    return static_cast<std::size_t>(outputs == Axis::row ? i : j);
  }

  template <class F>
  void for_each(const F& f) const {
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < columns; ++j) f(at(i, j), output(i, j));
    }
  }

  void step(const std::vector<double>& x, std::vector<double>& w, double lr,
            const deck::Optimizer& o) {
    std::vector<double> mean(moments.size());
    const double inputs = static_cast<double>(rows * columns) / static_cast<double>(mean.size());
    for_each([&](std::size_t e, std::size_t out) { mean[out] += x[e] * x[e] / inputs; });
    for (std::size_t out = 0; out < mean.size(); ++out)
      moments[out] = o.beta2 * moments[out] + (1 - o.beta2) * mean[out];
    std::vector<double> normed(x.size());
    double squares = 0;
    for_each([&](std::size_t e, std::size_t out) {
      normed[e] = x[e] / (std::sqrt(moments[out]) + o.eps);
      squares += normed[e] * normed[e];
    });
    const double rate = lr * 0.2 * std::sqrt(static_cast<double>(rows * columns) / squares);
    for_each([&](std::size_t e, std::size_t) {
      w[e] = w[e] * (1 - lr * o.weight_decay) - rate * normed[e];
    });
  }
};

struct NorMuonShape {
  Index rows, columns, matrices;
  Axis outputs;
};

const NorMuonShape normuon_shapes[] = {{1, 1, 1, Axis::row},        {5, 7, 1, Axis::row},
                                       {131, 57, 1, Axis::row},     {3, 2100, 1, Axis::row},
                                       {1, 1, 1, Axis::column},     {5, 7, 3, Axis::column},
                                       {131, 200, 3, Axis::column}, {700, 13, 1, Axis::column}};

template <class T>
class NorMuonOf : public testing::Test {};
using NorMuonPrecisions = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(NorMuonOf, NorMuonPrecisions, );

TYPED_TEST(NorMuonOf, IsItsFormula) {
  using T = TypeParam;
  const deck::Optimizer o = normuon_settings();
  for (const auto& [rows, columns, matrices, outputs] : normuon_shapes) {
    NorMuonUnit<T> one(normuon_table(rows, columns, matrices), outputs);
    const Index width = matrices * columns, hidden = rows * width;
    std::vector<PlainNorMuon> plain;
    for (Index m = 0; m < matrices; ++m)
      plain.push_back({rows, columns, width, m * columns, outputs});
    std::vector<double> w(one.master.begin() + 5, one.master.begin() + 5 + hidden);
    for (const Index number : {1, 2, 3}) {
      one.gradient = numbers<T>(one.count, 10 + static_cast<std::uint64_t>(number));
      one.update({0.01, number, 0.5}, one.count);
      std::vector<double> x;
      for (Index i = 0; i < hidden; ++i) x.push_back(tests::as_double(one.gradient[5 + i]));
      for (PlainNorMuon& p : plain) p.step(x, w, 0.01, o);
      for (Index i = 0; i < hidden; ++i) {
        ASSERT_NEAR(one.master[5 + i], w[i], static_cast<double>(number) * 2 * tests::gamma(12))
            << rows << " x " << columns << ", step " << number << ", element " << i;
        ASSERT_EQ(tests::as_double(one.parameters[5 + i]),
                  tests::as_double(static_cast<T>(one.master[5 + i])));
      }
    }
  }
}

TYPED_TEST(NorMuonOf, OtherParametersIsAdamW) {
  using T = TypeParam;
  NorMuonUnit<T> one(normuon_table(31, 7, 1), Axis::row);
  const auto before = one.master, moment = one.momentum;
  one.update({0.01, 3, 0.5}, one.count);
  const deck::Optimizer o = normuon_settings();
  for (Index i = 0; i < 5; ++i) {
    const double g = 0.5 * tests::as_double(one.gradient[i]), m = 0.8 * moment[i] + 0.2 * g,
                 v = 0.9 * 0.01 + 0.1 * g * g;
    const double step =
        0.01 * m / (1 - std::pow(0.8, 3)) / (std::sqrt(v / (1 - std::pow(0.9, 3))) + o.eps);
    EXPECT_NEAR(one.master[i], before[i] - step, 2 * tests::gamma(12) + 2e2 * tests::u * 0.01);
    EXPECT_NEAR(one.momentum[i], m, tests::gamma(12));
  }
  for (Index i = 5; i < 5 + 31 * 7; ++i) EXPECT_EQ(one.momentum[i], moment[i]);
}

TYPED_TEST(NorMuonOf, OfPartsIsThatOfTheWhole) {
  using T = TypeParam;
  for (const auto& [rows, columns, matrices, outputs] : normuon_shapes) {
    for (const Index length : {64, 1024}) {
      const param::Table table = normuon_table(rows, columns, matrices);
      NorMuonUnit<T> cut(table, outputs), whole(table, outputs);
      for (const Index number : {1, 2}) {
        cut.update({0.01, number, 0.5}, length);
        whole.update({0.01, number, 0.5}, whole.count);
      }
      EXPECT_TRUE(tests::same_bits(cut.master, whole.master)) << length;
      EXPECT_TRUE(tests::same_bits(cut.reduced, whole.reduced)) << length;
    }
  }
}

// Two tensor ranks each hold half of a matrix's columns, or of its rows. The sums are those of the
// full outputs.
TEST(NorMuonMoments, AreOfTheFullMatrix) {
  for (const Axis outputs : {Axis::row, Axis::column}) {
    const param::Table full{{"unit", {normuon_table(6, 8, 1)[0].params[1]}}};
    NorMuonUnit<float> whole(full, outputs);
    whole.update({0.01, 1, 1}, whole.count);
    for (const bool by_columns : {true, false}) {
      std::vector<std::uint64_t> sums(static_cast<std::size_t>(FixedSums::words * 8));
      for (const Index rank : {0, 1}) {
        param::Table table = full;
        table[0].params[0].split =
            by_columns ? param::Split{6, 8, rank * 4, 4} : param::Split{1, 48, rank * 24, 24};
        NorMuonUnit<float> half(table, outputs);
        ASSERT_EQ(half.count, 24);
        for (Index i = 0; i < 24; ++i)
          half.gradient[i] =
              whole.gradient[by_columns ? i / 4 * 8 + rank * 4 + i % 4 : rank * 24 + i];
        Share<float> share = half.share(0, 24);
        share.adds = sums.data();
        share.tensor_rank = rank;
        half.optimizer->update(tensor::HostCores(), {0.01, 1, 1}, share);
      }
      NorMuonUnit<float> joined(full, outputs);
      joined.update_moments({0.01, 1, 1, 1}, sums.data());
      EXPECT_TRUE(tests::same_bits(joined.reduced, whole.reduced)) << by_columns;
    }
  }
}

// An output without gradient has no moment and gets no step; nor has a matrix of zeros.
TEST(NorMuonMoments, OfZerosMakeNoStep) {
  for (const Index zeros : {7, 5 * 7}) {
    NorMuonUnit<float> one(normuon_table(5, 7, 1), Axis::row);
    std::fill_n(one.gradient.begin() + 5, zeros, 0.0F);
    const std::vector<float> before = one.master;
    one.update({0.01, 1, 1}, one.count);
    for (Index i = 5; i < 5 + zeros; ++i)
      EXPECT_FLOAT_EQ(one.master[i], before[i] * (1 - 0.01F * 0.25F));
    for (const float weight : one.master) EXPECT_TRUE(std::isfinite(weight));
  }
}

TEST(NorMuonDecay, IsCautiousWhereTheDeckSaysSo) {
  deck::Optimizer deck = normuon_settings();
  const auto updated = [&](double decay, bool cautious) {
    deck.weight_decay = decay, deck.cautious_decay = cautious;
    NorMuonUnit<float> one(normuon_table(31, 7, 1), Axis::row, deck);
    one.update({0.01, 3, 0.5}, one.count);
    return one.master;
  };
  const auto none = updated(0, false), all = updated(0.25, false), some = updated(0.25, true);
  const auto before = numbers<float>(std::ssize(none), 1);
  Index kept = 0;
  for (std::size_t i = 5; i < none.size(); ++i) {
    const bool leaves_zero = (before[i] > 0) == (none[i] > before[i]);
    EXPECT_EQ(some[i], leaves_zero ? none[i] : all[i]) << i;
    kept += leaves_zero ? 1 : 0;
  }
  EXPECT_GT(kept, 50);
}

TEST(NorMuonState, IsMuonsAndAValueForEachOutput) {
  const auto rows = make_optimizer(normuon_settings());
  EXPECT_EQ(rows->kind(), "normuon");
  EXPECT_EQ(param::length_of(rows->reduced_state(), {3, 7}), 3);
  const auto columns = make_optimizer(normuon_settings(), Axis::column);
  EXPECT_EQ(param::length_of(columns->reduced_state(), {3, 7}), 7);
  EXPECT_EQ(columns->state().size(), 3U);
  deck::Config config;
  config.optimizer.kind = deck::OptimizerKind::normuon;
  EXPECT_EQ(make_optimizer(config)->reduced_state(), columns->reduced_state()) << "GPT-2";
  config.model.family = deck::ModelFamily::llama;
  EXPECT_EQ(make_optimizer(config)->reduced_state(), rows->reduced_state());
}

}  // namespace
}  // namespace kzero::optim
