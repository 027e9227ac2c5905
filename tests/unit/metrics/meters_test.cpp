#include "metrics/meters.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kzero::metrics {
namespace {

TEST(MovingMedian, IsNotMovedByOneSlowStep) {
  MovingMedian median;
  EXPECT_EQ(median.value(), 0);
  for (int i = 0; i < 10; ++i) median.add(2);
  median.add(1000);
  EXPECT_EQ(median.value(), 2);
}

TEST(MovingMedian, FollowsTheLastValuesOnly) {
  MovingMedian median;
  for (int i = 0; i < 100; ++i) median.add(2);
  for (int i = 0; i < 31; ++i) median.add(i);
  EXPECT_EQ(median.value(), 15);
}

TEST(SteadyPace, MovesLittleWhereStepsVaryAndFollowsALastingChange) {
  SteadyPace pace;
  EXPECT_EQ(pace.seconds(), 0);
  for (int i = 0; i < 100; ++i) pace.add(i % 2 == 0 ? 0.5 : 1.5);
  double before = pace.seconds();
  for (int i = 0; i < 100; ++i) {
    pace.add(i % 2 == 0 ? 0.5 : 1.5);
    EXPECT_NEAR(pace.seconds(), before, 0.02);
    before = pace.seconds();
  }
  for (int i = 0; i < 400; ++i) pace.add(3);
  EXPECT_NEAR(pace.seconds(), 3, 0.05);
}

TEST(StepWork, CountsStepsByTheirTokens) {
  EXPECT_EQ(StepWork().of(7), 1);
  EXPECT_EQ(StepWork().between(3, 10), 7);
  EXPECT_EQ(StepWork().between(10, 10), 0);
  const StepWork work({{0, 100}, {10, 200}, {15, 50}});
  EXPECT_EQ(work.of(9), 1);
  EXPECT_EQ(work.of(10), 2);
  EXPECT_EQ(work.of(15), 0.5);
  EXPECT_EQ(work.between(8, 19), 2 + 5 * 2 + 4 * 0.5);
  EXPECT_EQ(work.between(11, 12), 2);
}

TEST(StepMeans, WeighLossesByStepsAndRatesByTime) {
  StepMeans means;
  EXPECT_TRUE(means.empty());
  EXPECT_TRUE(std::isnan(means.loss()));
  EXPECT_EQ(means.tokens_per_second(), 0);
  means.add({.loss = 1, .tokens = 10, .seconds = 1, .mfu = 0.4});
  means.add({.loss = 2, .tokens = 10, .seconds = 3, .mfu = 0.2});
  means.add({.loss = 99, .tokens = 10, .seconds = 0, .mfu = 0.9, .skipped = true});
  EXPECT_EQ(means.loss(), 1.5);
  EXPECT_EQ(means.tokens_per_second(), 7.5);
  EXPECT_DOUBLE_EQ(means.mfu(), 0.25);
}

TEST(Throughput, FillsRatesFromTokensAndSeconds) {
  StepRecord record{.tokens = 1000, .seconds = 0.5};
  Throughput{.flops_per_token = 6e6, .flops_per_second = 4e10}.fill(record);
  EXPECT_DOUBLE_EQ(record.tokens_per_second, 2000);
  EXPECT_DOUBLE_EQ(record.mfu, 0.3);
}

TEST(Throughput, AnUnknownPeakOrNoTimeGivesZeroAndNoInfinity) {
  StepRecord record{.tokens = 1000, .seconds = 0};
  Throughput{.flops_per_token = 6e6, .flops_per_second = 0}.fill(record);
  EXPECT_EQ(record.tokens_per_second, 0);
  EXPECT_EQ(record.mfu, 0);
}

TEST(ResidentMemory, SeesMemoryThatWasTouched) {
  const Index before = resident_peak_bytes();
  const std::vector<char> touched(64 << 20, 1);
  EXPECT_GE(resident_peak_bytes(), before + (60 << 20));
  EXPECT_EQ(touched.back(), 1);
}

}  // namespace
}  // namespace kzero::metrics
