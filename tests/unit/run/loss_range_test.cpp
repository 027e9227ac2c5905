#include "run/loss_range.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kzero::tests {
namespace {

using run::LossRange;

/// Losses around `level` that alternate by 0.1.
double noisy(double level, Index step) { return level + (step % 2 == 0 ? 0.05 : -0.05); }

LossRange after(Index steps, double level) {
  LossRange range;
  for (Index step = 0; step < steps; ++step) range.add(step, noisy(level, step));
  return range;
}

TEST(LossRange, TheFirstFiniteLossesAreWithin) {
  LossRange range;
  EXPECT_FALSE(range.record());
  for (Index step = 0; step < 8; ++step) {
    EXPECT_EQ(range.limit(), std::numeric_limits<double>::infinity());
    range.add(step, static_cast<double>(step));
    EXPECT_EQ(range.record()->sane_step, step);
  }
  EXPECT_LT(range.limit(), 10);
  LossRange infinite;
  infinite.add(0, std::nan(""));
  EXPECT_EQ(infinite.record()->sane_step, -1);
  EXPECT_EQ(infinite.record()->counted, 0);
}

TEST(LossRange, AStepWithoutALossIsAsTheOneBefore) {
  LossRange first;
  first.add_without_loss(0);
  EXPECT_EQ(first.record()->sane_step, 0);
  EXPECT_EQ(first.record()->counted, 0);
  LossRange range = after(20, 3);
  const double limit = range.limit();
  range.add_without_loss(20);
  EXPECT_EQ(range.record()->sane_step, 20);
  EXPECT_EQ(range.limit(), limit);
  range.add(21, 3.05);
  EXPECT_EQ(range.record()->sane_step, 21) << "it need not come back";
  range.add(22, 100);
  range.add_without_loss(23);
  EXPECT_EQ(range.record()->sane_step, 21);
}

TEST(LossRange, EndsFiveMeanChangesAboveTheLowestMean) {
  const LossRange range = after(100, 3);
  EXPECT_NEAR(range.record()->change, 0.1, 1e-9);
  EXPECT_NEAR(range.limit(), range.record()->lowest + 0.5, 1e-9);
  EXPECT_NEAR(range.record()->lowest, 3, 0.02);
}

TEST(LossRange, ALossBeyondItChangesNothingButTheRecordOfTheLastStep) {
  LossRange range = after(100, 3);
  const double limit = range.limit();
  for (const double loss : {4.0, 1e6, std::nan(""), std::numeric_limits<double>::infinity()}) {
    range.add(100, loss);
    EXPECT_EQ(range.limit(), limit);
    EXPECT_EQ(range.record()->sane_step, 99);
  }
  range.add(104, 3.1);
  EXPECT_EQ(range.record()->sane_step, 99) << "near is not back";
  range.add(105, 2.9);
  EXPECT_EQ(range.record()->sane_step, 105) << "it has come back";
  range.add(106, 3.1);
  EXPECT_EQ(range.record()->sane_step, 106);
}

TEST(LossRange, DoesNotFollowALossThatRisesSlowlyForGood) {
  LossRange range = after(100, 3);
  for (Index step = 100; step < 400; ++step) {
    range.add(step, noisy(3 + 0.02 * static_cast<double>(step - 99), step));
  }
  EXPECT_LT(range.record()->sane_step, 130);
  EXPECT_LT(range.limit(), 3.8);
}

TEST(LossRange, ATrainingThatLearnsStaysWithin) {
  LossRange range;
  for (Index step = 0; step < 2000; ++step) {
    range.add(step, noisy(2 + 8 * std::exp(-0.01 * static_cast<double>(step)), step));
    ASSERT_EQ(range.record()->sane_step, step);
  }
}

TEST(LossRange, ContinuesFromARecordBitForBit) {
  LossRange whole = after(37, 3), restarted(after(37, 3).record());
  for (Index step = 37; step < 80; ++step) {
    const double loss = step % 9 == 0 ? 17 : noisy(2.8, step);
    whole.add(step, loss);
    restarted.add(step, loss);
    ASSERT_EQ(whole.record(), restarted.record());
    ASSERT_EQ(whole.limit(), restarted.limit());
  }
}

}  // namespace
}  // namespace kzero::tests
