#include "run/slow_nodes.hpp"

#include <gtest/gtest.h>

namespace kzero::tests {
namespace {

using run::NodeGroups;
using run::RankTime;
using run::SlowNodes;
using Lines = std::vector<std::string>;

/// Ranks with steps of 20 s in total, `seconds` of which they computed.
std::vector<RankTime> computed(const std::vector<double>& seconds) {
  std::vector<RankTime> times;
  for (const double mine : seconds) times.push_back({20, 20 - mine});
  return times;
}

class Judgement {
 public:
  explicit Judgement(const std::vector<std::string>& hosts, std::vector<double> operations = {},
                     double share = 0.2)
      : groups_(hosts),
        slow_nodes_(groups_,
                    operations.empty() ? std::vector(hosts.size(), 1.0) : std::move(operations),
                    share) {}

  /// The lines for an interval of 10 steps.
  Lines operator()(const std::vector<double>& seconds) {
    return slow_nodes_.judge(computed(seconds), 10);
  }
  Lines operator()(const std::vector<double>& seconds, const std::vector<double>& no_core) {
    std::vector<RankTime> times = computed(seconds);
    for (std::size_t rank = 0; rank < times.size(); ++rank) times[rank].no_core = no_core[rank];
    return slow_nodes_.judge(times, 10);
  }
  std::vector<bool> slow() const { return slow_nodes_.slow(); }

 private:
  NodeGroups groups_;
  SlowNodes slow_nodes_;
};

const Lines none;
const std::vector<std::string> four{"n1", "n2", "n3", "n4"};

TEST(SlowNodes, ANodeIsNamedOnceAfterTwoIntervals) {
  Judgement judge(four);
  EXPECT_EQ(judge({3, 3, 19.6, 3.1}), none);
  EXPECT_EQ(judge.slow(), (std::vector{false, false, false, false}));
  EXPECT_EQ(judge({3, 3, 19.6, 3.1}),
            Lines{"node n3 is slow: the other nodes waited for it 83 % of the last 10 steps (it "
                  "computes 1.96 s a step, the others 0.30 s)"});
  EXPECT_EQ(judge.slow(), (std::vector{false, false, true, false}));
  EXPECT_EQ(judge({3, 3, 19.6, 3.1}), none) << "it has been said";
}

TEST(SlowNodes, AnIntervalThatIsSlowAloneIsNotNamed) {
  Judgement judge(four);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(judge({3, 3, 19.6, 3}), none);
    EXPECT_EQ(judge({3, 19.6, 3, 3}), none) << "another node";
    EXPECT_EQ(judge({3, 3, 3, 3}), none);
  }
}

TEST(SlowNodes, ANodeIsSlowUntilTheOthersHardlyWait) {
  Judgement judge(four);
  judge({3, 3, 10, 3});
  judge({3, 3, 10, 3});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(judge({3, 3, 6, 3}), none) << "15 % of the time";
  EXPECT_EQ(judge({3, 3, 4, 3}), none);
  EXPECT_EQ(judge({3, 3, 4, 3}),
            Lines{"node n3 is no longer slow: it computes 0.40 s a step, the others 0.30 s"});
  EXPECT_EQ(judge.slow(), std::vector(4, false));
  judge({3, 3, 10, 3});
  EXPECT_EQ(judge({3, 3, 10, 3}).size(), 1U) << "slow again";
}

TEST(SlowNodes, WhereAllWaitForTheNetworkNobodyIsSlow) {
  Judgement judge(four);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(judge({0.5, 0.6, 1.9, 0.5}), none);
}

TEST(SlowNodes, SeveralNodesAreNamedTheSlowestFirst) {
  Judgement judge({"n1", "n2", "n3", "n4", "n5"});
  judge({3, 15, 3, 19, 3});
  const Lines lines = judge({3, 15, 3, 19, 3});
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[0].starts_with("node n4 is slow")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("node n2 is slow")) << lines[1];
}

TEST(SlowNodes, WhatHalfOfTheOthersReachIsNotSlow) {
  Judgement judge({"n1", "n2", "n3"});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(judge({19, 19, 3}), none);
}

TEST(SlowNodes, OfTwoNodesTheSlowerIsNamed) {
  Judgement judge({"n1", "n2"});
  judge({3, 19});
  EXPECT_EQ(judge({3, 19}).size(), 1U);
  EXPECT_EQ(judge.slow(), (std::vector{false, true}));
}

TEST(SlowNodes, ManyAtOnceAreCounted) {
  std::vector<std::string> hosts;
  std::vector<double> seconds(20, 1.0);
  for (int i = 0; i < 20; ++i) hosts.push_back("n" + std::to_string(i));
  for (std::size_t i = 0; i < 7; ++i) seconds[i] = 10;
  Judgement judge(hosts);
  judge(seconds);
  const Lines lines = judge(seconds);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[3], "4 further nodes have become slow, or are no longer slow");
}

TEST(SlowNodes, ANodeOfSeveralRanksIsNamedIfAllAreSlow) {
  Judgement judge({"n1", "n1", "n2", "n2", "n3", "n3"});
  judge({3, 3, 18, 19, 3, 3});
  const Lines lines = judge({3, 3, 18, 19, 3, 3});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("node n2 is slow: the other nodes waited for it 80 %"))
      << lines[0];
}

TEST(SlowNodes, ARankIsNamedIfItsNodesOthersWaitForItToo) {
  Judgement judge({"n1", "n2", "n1", "n2"});  // the ranks of a node need not be consecutive
  judge({3, 3, 3, 19});
  const Lines lines = judge({3, 3, 3, 19});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("rank 3 on node n2 is slow: the other nodes waited"))
      << lines[0];
}

TEST(SlowNodes, OnOneNodeRanksAreNamed) {
  Judgement judge({"here", "here", "here"});
  judge({3, 19, 3});
  EXPECT_EQ(judge({3, 19, 3}),
            Lines{"rank 1 is slow: the other ranks waited for it 80 % of the last 10 steps (it "
                  "computes 1.90 s a step, the others 0.30 s)"});
  judge({3, 3, 3});
  EXPECT_EQ(judge({3, 3, 3}),
            Lines{"rank 1 is no longer slow: it computes 0.30 s a step, the others 0.30 s"});
}

// 5 micro-batches on 4 ranks: one rank has two.
TEST(SlowNodes, ANodeThatTheDeckGivesMoreMayTakeLonger) {
  Judgement judge(four, {2, 1, 1, 1});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(judge({12, 6, 6, 6}), none);
  judge({18, 6, 6, 6});
  EXPECT_EQ(judge({18, 6, 6, 6}).size(), 1U) << "half as long again as it should take";
}

// 7 micro-batches on 4 ranks: one rank has one. The optimizer takes the same time on all ranks.
TEST(SlowNodes, ANodeThatTheDeckGivesLessMayNotTakeLonger) {
  Judgement judge(four, {2, 2, 2, 1});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(judge({8, 8, 8, 7}), none);
  judge({8, 8, 8, 14});
  EXPECT_EQ(judge({8, 8, 8, 14}).size(), 1U);
}

// A node with a tenth of a core lacks most of its core time during messages.
TEST(SlowNodes, ANodeThatLacksCoresIsSlowInItsWaitsToo) {
  Judgement judge(four);
  judge({1, 1, 2.5, 1}, {2, 2, 14, 2});
  EXPECT_EQ(judge({1, 1, 2.5, 1}, {2, 2, 14, 2}),
            Lines{"node n3 is slow: the other nodes waited for it 68 % of the last 10 steps (it "
                  "computes 0.25 s a step, the others 0.10 s; it had no core for 1.40 s of its "
                  "waits, the others for 0.20 s)"});
}

// The node polls for a message on a core that other processes use too.
TEST(SlowNodes, ANodeThatLacksCoresOnlyWhileItWaitsHoldsUpNobody) {
  Judgement judge(four);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(judge({1, 1, 1.2, 1}, {2, 2, 14, 2}), none);
  Judgement pair({"n1", "n2"});
  pair({2, 10}, {15, 0});
  const Lines lines = pair({2, 10}, {15, 0});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("node n2 is slow: the other nodes waited for it 40 %"))
      << lines[0];
}

TEST(SlowNodes, WhereAllLackCoresAlikeNobodyIsSlow) {
  Judgement judge(four);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(judge({1, 1, 2, 1}, {12, 13, 14, 12}), none);
}

TEST(SlowNodes, ANodeWhoseRanksAllLackCoresIsNamed) {
  Judgement judge({"n1", "n1", "n2", "n2"});
  judge({1, 1, 2, 2}, {1, 1, 15, 15});
  const Lines lines = judge({1, 1, 2, 2}, {1, 1, 15, 15});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("node n2 is slow")) << lines[0];
}

TEST(SlowNodes, WithoutAShareNobodyIsJudged) {
  Judgement judge(four, {}, 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(judge({3, 3, 19, 3}), none);
}

TEST(SlowNodes, ARankAloneIsNotJudged) {
  Judgement judge({"n1"});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(judge({20}), none);
}

}  // namespace
}  // namespace kzero::tests
