// A campaign against numbers by hand: time, node-hours, energy, and what failures cost.
#include "plan/campaign.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.hpp"

namespace kzero::plan {
namespace {

constexpr StepCost step{.seconds = 2, .tokens = 1000, .checkpoint_bytes = 12'000};

TEST(Campaign, CountsWholeSteps) {
  const Campaign all = campaign(step, 4, {}, 10'001);
  EXPECT_EQ(all.steps, 11);
  EXPECT_EQ(all.seconds, 22);
  EXPECT_DOUBLE_EQ(all.node_hours(), 4 * 22.0 / 3600);
  EXPECT_FALSE(all.joules || all.interruptions) << "the file says nothing";
  EXPECT_EQ(all.failures(), 0);
}

TEST(Campaign, NodesNeedTheirPower) {
  EXPECT_DOUBLE_EQ(*campaign(step, 4, {.node_watts = 500}, 10'000).joules, 4 * 500 * 20);
}

/// Checkpoints of 12 s; one of 4 nodes fails every 9600 s, so that the interval is 480 s.
TEST(Campaign, CheckpointsAsYoungComputed) {
  const Site site{.node_failure_seconds = 4 * 9600.0, .storage_bytes = 1000};
  const Campaign all = campaign(step, 4, site, 10'000'000);
  ASSERT_TRUE(all.interruptions);
  EXPECT_DOUBLE_EQ(all.interruptions->between, 9600);
  EXPECT_DOUBLE_EQ(all.interruptions->checkpoint, 12);
  EXPECT_DOUBLE_EQ(all.interruptions->interval, 480);
  const double lost = 12.0 / 480 + (240.0 + 12) / 9600;
  EXPECT_DOUBLE_EQ(all.interruptions->lost, lost);
  EXPECT_DOUBLE_EQ(all.seconds, 20'000 / (1 - lost));
  EXPECT_DOUBLE_EQ(all.failures(), all.seconds / 9600);
}

TEST(Campaign, NoOtherIntervalLosesLess) {
  const Site site{.node_failure_seconds = 4e5, .storage_bytes = 100};
  const Interruptions best = *campaign(step, 7, site, 1e6).interruptions;
  const auto lost = [&](double interval) {
    return best.checkpoint / interval + (interval / 2 + best.checkpoint) / best.between;
  };
  EXPECT_DOUBLE_EQ(lost(best.interval), best.lost);
  for (const double factor : {0.5, 0.9, 1.1, 2.0}) {
    EXPECT_GT(lost(best.interval * factor), best.lost) << factor;
  }
}

TEST(Campaign, RefusesANodeThatFailsBeforeItsCheckpoint) {
  const Site site{.node_failure_seconds = 20, .storage_bytes = 1000};
  try {
    campaign(step, 1, site, 1e6);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("fails every 20 s, and a checkpoint takes 12 s"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace kzero::plan
