#include "data/blend_order.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace kzero::data {
namespace {

using Shares = std::vector<Index>;
using Weights = std::vector<double>;

TEST(Shares, AreTheWeightsThemselvesWhereTheseAreDecimal) {
  EXPECT_EQ(shares_of(Weights{3}), (Shares{1}));
  EXPECT_EQ(shares_of(Weights{1, 1, 1}), (Shares{1, 1, 1}));
  EXPECT_EQ(shares_of(Weights{0.7, 0.2, 0.1}), (Shares{7, 2, 1}));
  EXPECT_EQ(shares_of(Weights{0.333, 0.667}), (Shares{333, 667}));
  EXPECT_EQ(shares_of(Weights{70, 20, 10}), (Shares{7, 2, 1}));
  EXPECT_EQ(shares_of(Weights{0.25, 1.5}), (Shares{1, 6}));
  EXPECT_EQ(shares_of(Weights{999999, 1}), (Shares{999999, 1}));
}

TEST(Shares, AreMillionthsOfTheSumElsewhere) {
  EXPECT_EQ(shares_of(Weights{2e9, 1e9}), (Shares{666667, 333333}));
  EXPECT_EQ(shares_of(Weights{1e9, 1e9, 1e9}), (Shares{333334, 333333, 333333}));
  EXPECT_EQ(shares_of(Weights{1e12, 1e6}), (Shares{999999, 1}));
  EXPECT_EQ(shares_of(Weights{std::sqrt(2.0), std::sqrt(2.0)}), (Shares{1, 1}));
}

Shares random_shares(std::mt19937& random) {
  Shares shares(1 + random() % 9);
  for (Index& share : shares) share = random() % 2 == 0 ? 1 + random() % 4 : 1 + random() % 300;
  return shares;
}

// |n s_i - c_i P| (2m - 2) <= (2m - 3) P for every n: less than one sample for each source.
TEST(BlendOrder, EveryPrefixIsWithinTijdemansBoundOfTheWeights) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    const Shares shares = random_shares(random);
    const auto sources = static_cast<Index>(shares.size());
    const BlendOrder order(shares);
    const Index period = std::accumulate(shares.begin(), shares.end(), Index{0});
    ASSERT_EQ(order.period(), period);
    Shares given(shares.size(), 0);
    for (Index n = 1; n <= 2 * period; ++n) {
      const BlendOrder::Place place = order(n - 1);
      ASSERT_EQ(place.sample, given[static_cast<std::size_t>(place.source)]++) << n;
      if (sources == 1) continue;
      for (Index i = 0; i < sources; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_LE(std::abs(n * shares[at] - given[at] * period) * (2 * sources - 2),
                  (2 * sources - 3) * period)
            << "source " << i << " after " << n;
      }
    }
  }
}

TEST(BlendOrder, TwoEqualSourcesTakeTurns) {
  const BlendOrder order(Shares{1, 1});
  for (Index i = 0; i < 10; ++i)
    EXPECT_EQ(order(i).source, i % 2 == 0 ? order(0).source : 1 - order(0).source);
}

TEST(BlendOrder, ARareSourceComesInTheMiddle) {
  const BlendOrder order(Shares{9, 1});
  const Index at = order.count(0, 10) == 9 ? order(4).source == 1 ? 4 : 5 : -1;
  EXPECT_EQ(order(at), (BlendOrder::Place{1, 0}));
  EXPECT_EQ(order(at + 10), (BlendOrder::Place{1, 1}));
}

TEST(BlendOrder, AnySampleIsFoundAsIfAllBeforeItHadBeenCounted) {
  const Weights weights{0.4321, 0.3, 0.2, 0.0679};
  const BlendOrder order(shares_of(weights));
  ASSERT_EQ(order.period(), 10000);
  Shares given(4, 0);
  for (Index n = 0; n < 25000; ++n) {
    const auto [source, sample] = order(n);
    if (n % 997 == 0) {
      for (Index i = 0; i < 4; ++i)
        ASSERT_EQ(order.count(i, n), given[static_cast<std::size_t>(i)]) << n;
    }
    ASSERT_EQ(sample, given[static_cast<std::size_t>(source)]++) << n;
  }
  const Index far = Index{1} << 50;
  const auto [source, sample] = order(far);
  EXPECT_EQ(sample, order.count(source, far));
  const double expected = static_cast<double>(far) * weights[static_cast<std::size_t>(source)];
  EXPECT_NEAR(static_cast<double>(sample), expected, 1);
}

TEST(BlendOrder, ThePeriodIsAMillionAtMost) {
  const BlendOrder order(shares_of(Weights{std::sqrt(2.0), 1, 0.0012}));
  EXPECT_EQ(order.period(), 1000000);
  EXPECT_EQ(order(Index{3000000}).sample,
            3 * order.shares()[static_cast<std::size_t>(order(0).source)]);
}

}  // namespace
}  // namespace kzero::data
