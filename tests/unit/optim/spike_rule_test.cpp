#include "optim/spike_rule.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kzero::optim {
namespace {

deck::Optimizer spike_settings(double factor, Index window) {
  deck::Optimizer o;
  o.skip_above = factor, o.skip_window = window;
  return o;
}

/// The middle of the last `window` norms, by sorting all of them.
double plain_median(const std::vector<double>& norms, std::size_t window) {
  std::vector<double> sorted(norms.end() - static_cast<std::ptrdiff_t>(window), norms.end());
  std::ranges::sort(sorted);
  return (sorted[(window - 1) / 2] + sorted[window / 2]) / 2;
}

TEST(SpikeRule, ComparesWithTheMedianOfTheLastAppliedSteps) {
  for (const std::size_t window : {2U, 5U, 8U}) {
    SpikeRule rule(spike_settings(1.5, static_cast<Index>(window)));
    std::vector<double> applied;
    Index skipped = 0;
    for (int step = 0; step < 200; ++step) {
      const double norm = 1 + (step * 7919 % 101) / 40.0;
      const auto limit = rule.limit();
      ASSERT_EQ(limit.has_value(), applied.size() >= window) << step;
      if (limit) {
        ASSERT_DOUBLE_EQ(*limit, 1.5 * plain_median(applied, window)) << step;
      }
      if (limit && norm > *limit) {
        rule.skip();
        ++skipped;
      } else {
        rule.add(norm);
        applied.push_back(norm);
      }
    }
    EXPECT_GT(skipped, 5) << "the case has too few spikes";
    EXPECT_EQ(rule.skipped(), skipped);
    EXPECT_EQ(rule.norms(), std::vector<double>(applied.end() - static_cast<std::ptrdiff_t>(window),
                                                applied.end()));
  }
}

TEST(SpikeRule, IsOffByDefault) {
  SpikeRule rule{deck::Optimizer()};
  EXPECT_FALSE(rule.is_on());
  for (int i = 0; i < 1000; ++i) rule.add(1);
  EXPECT_FALSE(rule.limit());
  EXPECT_TRUE(rule.norms().empty());
}

TEST(SpikeRule, GoesOnFromRestoredNorms) {
  SpikeRule first(spike_settings(2, 4));
  for (const double norm : {3, 1, 2, 5, 4}) first.add(norm);
  first.skip();
  SpikeRule same(spike_settings(2, 4)), shorter(spike_settings(2, 3)), longer(spike_settings(2, 5));
  for (SpikeRule* rule : {&same, &shorter, &longer}) rule->restore(first.norms(), first.skipped());
  EXPECT_EQ(same.limit(), first.limit());
  EXPECT_EQ(same.skipped(), 1);
  EXPECT_EQ(shorter.limit(), 2 * 4.0) << "the median of 2, 5 and 4";
  EXPECT_FALSE(longer.limit()) << "has to wait for another step";
}

}  // namespace
}  // namespace kzero::optim
