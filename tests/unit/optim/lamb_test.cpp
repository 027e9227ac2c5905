// Compares LAMB's two passes with plain loops in fp64. No division of a unit changes its sums.
#include "optim/kinds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/exact_sum.hpp"
#include "optim/place.hpp"
#include "support/guarded.hpp"
#include "support/launches.hpp"
#include "support/numbers.hpp"
#include "support/same_bits.hpp"

namespace kzero::optim {
namespace {

using kernels::ExactSum;
using tests::Guarded;
using tests::numbers;

TEST(TrustRatio, IsTheRatioOfNormsWithinItsLimits) {
  EXPECT_EQ(trust_ratio(4, 16), 0.5);
  EXPECT_EQ(trust_ratio(0, 16), 1);
  EXPECT_EQ(trust_ratio(4, 0), 1);
  EXPECT_EQ(trust_ratio(1, 1e12), 0.01);
  EXPECT_EQ(trust_ratio(1e12, 1), 10);
}

constexpr std::size_t words_of_test = 6 * ExactSum::words_of_sum;  // two sums of three parameters

double value_of(const std::vector<std::uint64_t>& words, std::size_t sum) {
  return ExactSum::of_words(words.data(), static_cast<Index>(sum)).value();
}

/// A vector, which does not decay, between two matrices of rows x 7.
param::Table lamb_table(Index rows) {
  return {{"unit",
           {{"first", {rows, 7}, param::Init::normal, 1, true},
            {"vector", {11}, param::Init::zeros, 0, false},
            {"second", {rows, 7}, param::Init::normal, 1, true}}}};
}

deck::Optimizer lamb_settings() {
  deck::Optimizer o;
  o.kind = deck::OptimizerKind::lamb;
  o.beta1 = 0.9, o.beta2 = 0.99, o.eps = 1e-6, o.weight_decay = 0.25;
  return o;
}

constexpr Update lamb_step{0.01, 3, 0.5};

/// All state of a test's units, initialized from numbers().
template <class T>
struct LambUnit {
  explicit LambUnit(Index rows)
      : table(lamb_table(rows)),
        layout(table, 1),
        count(table[0].elements()),
        master(numbers<float>(count, 1)),
        first(numbers<float>(count, 2, 0.1)),
        second(std::vector<float>(static_cast<std::size_t>(count), 0.01F)),
        gradient(numbers<T>(count, 3)),
        parameters(count) {}

  Share<T> share(Index begin, Index end) const {
    return {&table[0],
            &layout.unit(0),
            begin,
            end,
            gradient.data() + begin,
            parameters.data() + begin,
            {master.data() + begin, first.data() + begin, second.data() + begin}};
  }

  const param::Table table;
  const param::FlatLayout layout;
  const Index count;
  const Guarded<float> master, first, second;
  const Guarded<T> gradient, parameters;
};

/// Runs one update in parts of `length` elements.
template <class T>
std::vector<std::uint64_t> update_in_parts(const LambUnit<T>& unit, Index length) {
  const auto optimizer = make_lamb(lamb_settings());
  std::vector<std::uint64_t> sums(words_of_test);
  const Guarded<std::uint64_t> adds(sums);
  Update update = lamb_step;
  for (update.pass = 0; update.pass < optimizer->passes(); ++update.pass) {
    for (Index begin = 0; begin < unit.count; begin += length) {
      Share<T> share = unit.share(begin, std::min(unit.count, begin + length));
      if (update.pass == 0) {
        share.adds = adds.data();
      } else {
        share.sums = sums.data();
      }
      optimizer->update({}, update, share);
    }
    if (update.pass == 0) {
      sums = adds.host();
      EXPECT_TRUE(tests::same_bits(unit.master.host(), numbers<float>(unit.count, 1)))
          << "parameters change in the last pass alone";
    }
  }
  return sums;
}

template <class T>
class Lamb : public testing::Test {};
using LambPrecisions = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(Lamb, LambPrecisions, );

TYPED_TEST(Lamb, IsItsFormula) {
  using T = TypeParam;
  const deck::Optimizer o = lamb_settings();
  for (const Index rows : {1, 109, 1297}) {
    const LambUnit<T> unit(rows);
    const auto w = unit.master.host(), m = unit.first.host(), v = unit.second.host();
    const auto g = unit.gradient.host();
    const auto sums = update_in_parts(unit, unit.count);
    const auto masters = unit.master.host(), firsts = unit.first.host(),
               seconds = unit.second.host();
    const auto rounded = unit.parameters.host();
    Index begin = 0;
    for (std::size_t p = 0; p < 3; ++p) {
      const Index end = begin + unit.table[0].params[p].elements();
      const double decay = p == 1 ? 0 : o.weight_decay;
      std::vector<double> u;
      double w2 = 0, u2 = 0;
      for (Index i = begin; i < end; ++i) {
        const double gi = 0.5 * tests::as_double(g[i]);
        const double mi = o.beta1 * m[i] + (1 - o.beta1) * gi;
        const double vi = o.beta2 * v[i] + (1 - o.beta2) * gi * gi;
        EXPECT_NEAR(firsts[i], mi, tests::gamma(4));
        EXPECT_NEAR(seconds[i], vi, tests::gamma(4));
        u.push_back(mi / (1 - std::pow(o.beta1, 3)) /
                        (std::sqrt(vi / (1 - std::pow(o.beta2, 3))) + o.eps) +
                    decay * w[i]);
        w2 += static_cast<double>(w[i]) * w[i];
        u2 += u.back() * u.back();
      }
      // Squares are rounded, and 64 of them are added in fp32. u has a dozen roundings. 1 - beta2^3
      // is a difference with a relative error of 2^-24 / 0.03.
      const double error_of_u = tests::gamma(12) + tests::u / 0.03;
      EXPECT_NEAR(value_of(sums, 2 * p), w2, tests::gamma(65) * w2);
      EXPECT_NEAR(value_of(sums, 2 * p + 1), u2, (tests::gamma(65) + 2 * error_of_u) * u2);
      const double ratio = trust_ratio(w2, u2);
      for (Index i = begin; i < end; ++i) {
        const double ui = u[i - begin];
        const double expected = w[i] - lamb_step.lr * ratio * ui;
        EXPECT_NEAR(masters[i], expected,
                    2 * tests::u * std::abs(expected) + lamb_step.lr * ratio *
                                                            (tests::gamma(70) + 3 * error_of_u) *
                                                            (std::abs(ui) + 1))
            << p << ' ' << i;
        EXPECT_EQ(tests::as_double(rounded[i]), tests::as_double(static_cast<T>(masters[i])));
      }
      begin = end;
    }
  }
}

// Shards and copies may begin at multiples of 64 elements of the unit.
TYPED_TEST(Lamb, OfPartsIsThatOfTheWhole) {
  using T = TypeParam;
  const LambUnit<T> whole(397);
  const auto expected = update_in_parts(whole, whole.count);
  for (const Index length : {64, 128, 1024}) {
    const LambUnit<T> cut(397);
    auto sums = update_in_parts(cut, length);
    EXPECT_EQ(sums, expected) << length;
    EXPECT_TRUE(tests::same_bits(cut.master.host(), whole.master.host())) << length;
    EXPECT_TRUE(tests::same_bits(cut.first.host(), whole.first.host())) << length;
    EXPECT_TRUE(tests::same_bits(cut.second.host(), whole.second.host())) << length;
    EXPECT_TRUE(tests::same_bits(cut.parameters.host(), whole.parameters.host())) << length;
  }
}

// Within rounding on device builds, bit for bit if the host is the device.
TYPED_TEST(Lamb, OnTheHostIsTheSame) {
  using T = TypeParam;
  const LambUnit<T> unit(397);
  auto w = unit.master.host(), m = unit.first.host(), v = unit.second.host();
  auto g = unit.gradient.host(), p = unit.parameters.host();
  const auto expected = update_in_parts(unit, unit.count);
  const auto optimizer = make_lamb(lamb_settings());
  std::vector<std::uint64_t> sums(words_of_test);
  Share<T> share{&unit.table[0], &unit.layout.unit(0),          0, unit.count, g.data(),
                 p.data(),       {w.data(), m.data(), v.data()}};
  share.adds = sums.data();
  optimizer->update(tensor::HostCores(), lamb_step, share);
  Update last = lamb_step;
  last.pass = 1;
  share.sums = sums.data();
  optimizer->update(tensor::HostCores(), last, share);
  const auto masters = unit.master.host();
  for (Index i = 0; i < unit.count; ++i) {
    EXPECT_NEAR(w[i], masters[i], 1e-5);
    EXPECT_EQ(tests::as_double(p[i]), tests::as_double(static_cast<T>(w[i])));
  }
  if constexpr (tensor::on_host) {
    EXPECT_TRUE(tests::same_bits(w, masters));
    EXPECT_TRUE(tests::same_bits(m, unit.first.host()));
    EXPECT_TRUE(tests::same_bits(v, unit.second.host()));
    EXPECT_EQ(sums, expected);
  }
}

/// Runs the first pass over a unit on one of the tensor ranks that hold it.
void add_up(const LambUnit<float>& unit, const Guarded<std::uint64_t>& sums, Index tensor_rank) {
  Share<float> share = unit.share(0, unit.count);
  share.adds = sums.data();
  share.tensor_rank = tensor_rank;
  make_lamb(lamb_settings())->update({}, lamb_step, share);
}

TEST(LambSums, CountOnTheOwnerOfWhatSeveralTensorRanksHold) {
  const LambUnit<float> unit(11);
  const Guarded<std::uint64_t> sums{std::vector<std::uint64_t>(words_of_test)};
  add_up(unit, sums, 1);  // the parameters are replicated: rank 0 counts them
  EXPECT_EQ(sums.host(), std::vector<std::uint64_t>(words_of_test));
  EXPECT_FALSE(tests::same_bits(unit.first.host(), numbers<float>(unit.count, 2, 0.1)))
      << "its moments are updated nevertheless";
}

TEST(LambSums, IsOneLaunchForAllParametersOfAUnit) {
  const LambUnit<float> unit(11);
  const Guarded<std::uint64_t> sums{std::vector<std::uint64_t>(words_of_test)};
  const tests::Launches launches;
  add_up(unit, sums, 0);
  EXPECT_EQ(launches.count(), 1);
}

}  // namespace
}  // namespace kzero::optim
