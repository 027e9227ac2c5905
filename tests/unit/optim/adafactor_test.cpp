// Compares Adafactor's three passes with plain loops in fp64, for any division of a unit and any
// split of a parameter over tensor ranks, on hosts only.
#include "optim/kinds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "optim/fixed_sum.hpp"
#include "optim/place.hpp"
#include "optim/segments.hpp"
#include "support/numbers.hpp"
#include "support/same_bits.hpp"

namespace kzero::optim {
namespace {

using tests::numbers;

TEST(FixedSums, AreExactWhateverTheOrder) {
  const auto values = numbers<float>(1000, 1);
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  const FixedSums fixed(std::sqrt(squares));
  const auto sum_of = [&](const std::vector<float>& all) {
    std::vector<std::uint64_t> sum(FixedSums::words);
    for (const float value : all) {
      const auto words = fixed.words_of(value);
      sum[0] += static_cast<std::uint64_t>(words.high);
      sum[1] += static_cast<std::uint64_t>(words.low);
    }
    return sum;
  };
  const auto sum = sum_of(values);
  EXPECT_NEAR(fixed.value(sum.data()), squares, 1e-12 * squares);
  EXPECT_EQ(sum_of({values.rbegin(), values.rend()}), sum);
  const auto value = static_cast<float>(std::sqrt(squares) * 1e-9);
  const double small = static_cast<double>(value);
  EXPECT_NEAR(fixed.value(sum_of({value}).data()), small * small, 1e-9 * small * small)
      << "far below the norm";
  EXPECT_EQ(FixedSums(0).value(std::vector<std::uint64_t>(2).data()), 0);
}

TEST(Segments, AreTheRowsOfWhatATensorRankHolds) {
  // The middle third of every row of 3 x 10, in two blocks per row.
  param::ParamSpec split{"matrix", {3, 10}};
  split.split = {6, 5, 2, 2};
  std::vector<Index> found;
  for_each_segment(split, 1, 9, [&](const Segment& s) {
    for (Index i = 0; i < s.count; ++i) {
      EXPECT_EQ(s.local + i, 1 + std::ssize(found));
      found.push_back(s.row * 10 + s.column + i);
    }
  });
  EXPECT_EQ(found, (std::vector<Index>{3, 7, 8, 12, 13, 17, 18, 22}));
  found.clear();
  for_each_segment({"vector", {7}}, 2, 6, [&](const Segment& s) {
    EXPECT_EQ(s.row, 0);
    for (Index i = 0; i < s.count; ++i) found.push_back(s.column + i);
  });
  EXPECT_EQ(found, (std::vector<Index>{2, 3, 4, 5}));
}

deck::Optimizer factored_settings() {
  deck::Optimizer o;
  o.kind = deck::OptimizerKind::adafactor;
  o.eps = 1e-30, o.weight_decay = 0.25;
  return o;
}

/// A matrix, which decays, between two vectors. Holds the full matrix or a tensor rank's columns.
struct FactoredUnit {
  explicit FactoredUnit(Index rows, Index columns)
      : table{{"unit",
               {{"before", {5}, param::Init::zeros, 0, false},
                {"matrix", {rows, columns}, param::Init::normal, 1, true},
                {"after", {columns}, param::Init::zeros, 0, false}}}} {}

  param::Table table;
};

/// The state of a training of one unit on one rank, with every array on the host.
template <class T>
struct Factored {
  explicit Factored(const param::Table& t)
      : table(t),
        layout(table, 1),
        count(layout.unit(0).elements),
        master(numbers<float>(count, 1)),
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

  double norm() const {
    double squares = 0;
    for (const T g : gradient) squares += tests::as_double(g) * tests::as_double(g);
    return std::sqrt(squares);
  }

  Share<T> share(Index begin, Index end) {
    return {&table[0],
            &layout.unit(0),
            begin,
            end,
            gradient.data() + begin,
            parameters.data() + begin,
            {master.data() + begin}};
  }

  /// Runs passes 0 to 2 of an update in parts of `length` elements.
  void update(const Update& all, Index length) {
    std::vector<std::uint64_t> before, words;
    Update update = all;
    for (update.pass = 0; update.pass < 3; ++update.pass) {
      words.assign(static_cast<std::size_t>(sum([&](const param::ParamSpec& p) {
                     return optimizer->sum_words(update.pass, p);
                   })),
                   0);
      const std::uint64_t* sums = before.data();
      float* kept = reduced.data();
      for (const param::ParamSpec& p : table[0].params) {
        if (update.pass == 0) break;
        optimizer->update_reduced(update, p, sums, kept);
        sums += optimizer->sum_words(update.pass - 1, p);
        kept += param::length_of(optimizer->reduced_state(), p.shape);
      }
      for (Index begin = 0; begin < count; begin += length) {
        Share<T> part = share(begin, std::min(count, begin + length));
        part.adds = words.data();
        if (update.pass > 0) part.sums = before.data();
        part.reduced = reduced.data();
        optimizer->update(tensor::HostCores(), update, part);
      }
      before = words;
    }
  }

  const std::unique_ptr<const Optimizer> optimizer = make_optimizer(factored_settings());
  const param::Table table;
  const param::FlatLayout layout;
  const Index count;
  std::vector<float> master;
  std::vector<T> gradient, parameters;
  std::vector<float> reduced;
};

/// Step `number` of torch.optim.Adafactor in fp64, for a matrix or for a vector as one row.
struct PlainAdafactor {
  PlainAdafactor(const param::ParamSpec& p, const float* weights)
      : rows(std::max<Index>(1, param::rows_of(p.shape))),
        columns(param::columns_of(p.shape)),
        is_vector(p.shape.size() == 1),
        decays(p.decays),
        w(weights, weights + rows * columns),
        row(static_cast<std::size_t>(rows)),
        column(static_cast<std::size_t>(columns)) {}

  void step(const std::vector<double>& g, double lr, Index number, double decay) {
    const auto at = [&](Index i, Index j) { return static_cast<std::size_t>(i * columns + j); };
    const double s = static_cast<double>(number), weight = std::pow(s, -0.8);
    std::vector<double> r(row.size()), c(column.size());
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < columns; ++j) {
        r[i] += g[at(i, j)] * g[at(i, j)] / static_cast<double>(columns);
        c[j] += g[at(i, j)] * g[at(i, j)] / static_cast<double>(rows);
      }
    }
    for (std::size_t i = 0; i < r.size(); ++i) row[i] += weight * (r[i] - row[i]);
    for (std::size_t j = 0; j < c.size(); ++j) column[j] += weight * (c[j] - column[j]);
    const double mean = std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(rows);
    std::vector<double> u(w.size());
    double u2 = 0, w2 = 0;
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < columns; ++j) {
        const double v = (is_vector ? 1 : row[i] / mean) * column[j];
        u[at(i, j)] = g[at(i, j)] / std::sqrt(v);
        u2 += u[at(i, j)] * u[at(i, j)];
        w2 += w[at(i, j)] * w[at(i, j)];
      }
    }
    const double n = static_cast<double>(w.size());
    const double alpha = std::max(1e-3, std::sqrt(w2 / n)) * std::min(lr, 1 / std::sqrt(s));
    const double divisor = std::max(1.0, std::sqrt(u2 / n));
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i] = w[i] * (decays ? 1 - lr * decay : 1) - alpha / divisor * u[i];
      largest = std::max(largest, std::abs(u[i]));
    }
  }

  Index rows, columns;
  bool is_vector, decays;
  std::vector<double> w, row, column;
  double largest = 0;  // largest direction so far
};

template <class T>
class Adafactor : public testing::Test {};
using FactoredPrecisions = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(Adafactor, FactoredPrecisions, );

TYPED_TEST(Adafactor, IsItsFormula) {
  using T = TypeParam;
  const std::vector<std::pair<Index, Index>> shapes{{1, 1}, {3, 7}, {131, 257}, {700, 13}};
  for (const auto& [rows, columns] : shapes) {
    Factored<T> one(FactoredUnit(rows, columns).table);
    std::vector<PlainAdafactor> plain;
    Index begin = 0;
    for (const param::ParamSpec& p : one.table[0].params) {
      plain.emplace_back(p, one.master.data() + begin);
      begin += p.elements();
    }
    for (const Index number : {1, 2, 3}) {
      one.gradient = numbers<T>(one.count, 10 + static_cast<std::uint64_t>(number));
      one.update({0.02, number, 0.5, 0, one.norm()}, one.count);
      begin = 0;
      for (PlainAdafactor& p : plain) {
        std::vector<double> g;
        for (std::size_t i = 0; i < p.w.size(); ++i)
          g.push_back(0.5 * tests::as_double(one.gradient[static_cast<std::size_t>(begin) + i]));
        p.step(g, 0.02, number, factored_settings().weight_decay);
        for (std::size_t i = 0; i < p.w.size(); ++i) {
          const auto at = static_cast<std::size_t>(begin) + i;
          // The bound is twice the roundings of a direction and of the weight in each step. The
          // direction's norm is a sum over blocks of 64 elements.
          EXPECT_NEAR(one.master[at], p.w[i],
                      static_cast<double>(number) * (tests::gamma(4) * (std::abs(p.w[i]) + 1) +
                                                     0.02 * tests::gamma(80) * (p.largest + 1)))
              << rows << " x " << columns << ", step " << number << ", element " << at;
          EXPECT_EQ(tests::as_double(one.parameters[at]),
                    tests::as_double(static_cast<T>(one.master[at])));
        }
        begin += static_cast<Index>(p.w.size());
      }
    }
  }
}

TYPED_TEST(Adafactor, OfPartsIsThatOfTheWhole) {
  using T = TypeParam;
  for (const Index length : {64, 192, 1024}) {
    Factored<T> cut(FactoredUnit(131, 57).table), whole(FactoredUnit(131, 57).table);
    for (const Index number : {1, 2}) {
      cut.update({0.02, number, 0.5, 0, cut.norm()}, length);
      whole.update({0.02, number, 0.5, 0, whole.norm()}, whole.count);
    }
    EXPECT_TRUE(tests::same_bits(cut.master, whole.master)) << length;
    EXPECT_TRUE(tests::same_bits(cut.reduced, whole.reduced)) << length;
  }
}

// Two tensor ranks each hold half of a matrix's columns. The means are those of full rows and
// columns.
TEST(AdafactorMeans, AreOfTheFullMatrix) {
  const FactoredUnit full(6, 8);
  Factored<float> whole(full.table);
  whole.update({0.02, 1, 1, 0, whole.norm()}, whole.count);
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(FixedSums::words * (6 + 8)));
  for (const Index rank : {0, 1}) {
    param::Table table = full.table;
    table[0].params = {full.table[0].params[1]};
    table[0].params[0].split = {6, 8, rank * 4, 4};
    Factored<float> half(table);
    ASSERT_EQ(half.count, 24);
    for (Index i = 0; i < 24; ++i)  // after the vector of 5
      half.gradient[i] = whole.gradient[5 + i / 4 * 8 + rank * 4 + i % 4];
    Share<float> share = half.share(0, 24);
    share.adds = sums.data();
    share.reduced = half.reduced.data();
    share.tensor_rank = rank;
    half.optimizer->update(tensor::HostCores(), {0.02, 1, 1, 0, whole.norm()}, share);
  }
  std::vector<float> reduced(6 + 8);
  whole.optimizer->update_reduced({0.02, 1, 1, 1, whole.norm()}, full.table[0].params[1],
                                  sums.data(), reduced.data());
  EXPECT_TRUE(tests::same_bits(
      reduced, std::vector<float>(whole.reduced.begin() + 5, whole.reduced.begin() + 5 + 14)));
}

// Rows that no token of a batch reads, as in an embedding, get no step instead of a step by 0 / 0.
TEST(AdafactorMeans, OfZeroGradientsMakeNoStep) {
  Factored<float> one(FactoredUnit(3, 7).table);
  std::fill(one.gradient.begin(), one.gradient.begin() + 12, 0.0F);
  const std::vector<float> before = one.master;
  one.update({0.02, 1, 1, 0, one.norm()}, one.count);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(one.master[i], before[i]);
  for (std::size_t i = 5; i < 12; ++i) {
    EXPECT_FLOAT_EQ(one.master[i], before[i] * (1 - 0.02F * 0.25F));
  }
  for (const float weight : one.master) EXPECT_TRUE(std::isfinite(weight));
}

TEST(AdafactorState, IsTheMasterWeightsAndRowsAndColumns) {
  const auto optimizer = make_optimizer(factored_settings());
  EXPECT_EQ(param::bytes_per_element(optimizer->state()), 4);
  EXPECT_EQ(param::length_of(optimizer->reduced_state(), {3, 7}), 10);
  EXPECT_EQ(param::length_of(optimizer->reduced_state(), {7}), 7);
}

}  // namespace
}  // namespace kzero::optim
