#include "optim/schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kzero::optim {
namespace {

constexpr double exact = 4 * std::numeric_limits<double>::epsilon();

deck::Optimizer settings(deck::Schedule schedule, Index warmup) {
  deck::Optimizer o;
  o.lr = 2e-3, o.min_lr = 5e-4, o.warmup = warmup, o.schedule = schedule;
  return o;
}

TEST(Schedule, WarmsUpInEqualStepsToTheFullRate) {
  for (const auto schedule : {deck::Schedule::cosine, deck::Schedule::linear, deck::Schedule::wsd,
                              deck::Schedule::constant}) {
    deck::Optimizer o = settings(schedule, 4);
    o.decay = 16;
    for (Index s = 0; s < 4; ++s) {
      EXPECT_NEAR(learning_rate(o, s, 20), 2e-3 * static_cast<double>(s + 1) / 4, 2e-3 * exact);
    }
    EXPECT_NEAR(learning_rate(o, 4, 20), 2e-3, 2e-3 * exact) << "the first step after it";
  }
}

TEST(Schedule, CosineFollowsItsFormula) {
  const deck::Optimizer o = settings(deck::Schedule::cosine, 4);
  for (Index s = 4; s < 20; ++s) {
    const double done = static_cast<double>(s - 4) / 16;
    EXPECT_NEAR(learning_rate(o, s, 20),
                5e-4 + 0.5 * 1.5e-3 * (1 + std::cos(std::acos(-1.0) * done)), 2e-3 * exact);
  }
  EXPECT_NEAR(learning_rate(o, 12, 20), 1.25e-3, 2e-3 * exact) << "half-way";
}

TEST(Schedule, LinearFallsEvenly) {
  const deck::Optimizer o = settings(deck::Schedule::linear, 0);
  for (Index s = 0; s < 10; ++s) {
    EXPECT_NEAR(learning_rate(o, s, 10), 2e-3 - 1.5e-4 * static_cast<double>(s), 2e-3 * exact);
  }
}

TEST(Schedule, ConstantStays) {
  const deck::Optimizer o = settings(deck::Schedule::constant, 0);
  for (const Index s : {0, 1, 9}) EXPECT_EQ(learning_rate(o, s, 10), 2e-3);
}

TEST(Schedule, WsdStaysAndThenFallsOnALine) {
  deck::Optimizer o = settings(deck::Schedule::wsd, 4);
  o.decay = 5;
  for (Index s = 4; s <= 15; ++s) EXPECT_EQ(learning_rate(o, s, 20), 2e-3) << s;
  for (Index s = 16; s < 20; ++s) {
    const double left = static_cast<double>(20 - s) / 5;
    EXPECT_NEAR(learning_rate(o, s, 20), 5e-4 + 1.5e-3 * left, 2e-3 * exact) << s;
  }
}

TEST(Schedule, WarmUpMayTakeTheWholeRun) {
  const deck::Optimizer o = settings(deck::Schedule::cosine, 5);
  EXPECT_NEAR(learning_rate(o, 4, 5), 2e-3, 2e-3 * exact);
  EXPECT_TRUE(std::isfinite(learning_rate(o, 5, 5)));
}

}  // namespace
}  // namespace kzero::optim
