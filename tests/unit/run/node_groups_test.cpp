#include "run/node_groups.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace kzero::tests {
namespace {

using run::NodeGroups;
using run::RankTime;

TEST(NodeGroups, AreNodesInTheOrderOfTheirFirstRanks) {
  const NodeGroups groups({"b", "a", "b", "a", "c"});
  EXPECT_FALSE(groups.by_rank());
  ASSERT_EQ(groups.groups().size(), 3U);
  EXPECT_EQ(groups.groups()[0].host, "b");
  EXPECT_EQ(groups.groups()[0].ranks, (std::vector<Index>{0, 2}));
  EXPECT_EQ(groups.groups()[1].ranks, (std::vector<Index>{1, 3}));
  EXPECT_EQ(groups.groups()[2].ranks, (std::vector<Index>{4}));
}

TEST(NodeGroups, OfOneNodeAreItsRanks) {
  const NodeGroups groups({"a", "a", "a"});
  EXPECT_TRUE(groups.by_rank());
  ASSERT_EQ(groups.groups().size(), 3U);
  EXPECT_EQ(groups.groups()[2].host, "a");
  EXPECT_EQ(groups.groups()[2].ranks, (std::vector<Index>{2}));
}

TEST(NodeGroups, ARecordHasMeansAndTheBusiestRank) {
  const NodeGroups groups({"a", "a", "b", "b"});
  const std::vector<RankTime> times{{8, 4, 1}, {8, 2}, {10, 2, 1}, {10, 1, 0.5}};
  const metrics::NodesRecord record = groups.record(times, 7, 3, {false, true});
  EXPECT_EQ(record.step, 7);
  EXPECT_EQ(record.steps, 3);
  EXPECT_EQ(record.seconds, 9);
  EXPECT_EQ(record.count, 2);
  ASSERT_EQ(record.rows.size(), 2U);
  const metrics::NodeRow& busiest = record.rows[0];
  EXPECT_EQ(busiest.host, "b");
  EXPECT_EQ(busiest.first_rank, 2);
  EXPECT_EQ(busiest.ranks, 2);
  EXPECT_EQ(busiest.compute_seconds, 8.5);
  EXPECT_EQ(busiest.wait_seconds, 1.5);
  EXPECT_EQ(busiest.no_core_seconds, 0.75);
  EXPECT_EQ(busiest.busiest_rank, 3);
  EXPECT_EQ(busiest.busiest_seconds, 9);
  EXPECT_TRUE(busiest.slow);
  EXPECT_EQ(record.rows[1].compute_seconds, 5);
  EXPECT_EQ(record.rows[1].busiest_rank, 1);
  EXPECT_FALSE(record.rows[1].slow);
  EXPECT_EQ(record.compute.min, 5);
  EXPECT_EQ(record.compute.mean, 6.75);
  EXPECT_EQ(record.compute.max, 8.5);
  EXPECT_EQ(record.wait.min, 1.5);
  EXPECT_EQ(record.wait.mean, 2.25);
  EXPECT_EQ(record.wait.max, 3);
}

TEST(NodeGroups, ARecordOfManyNodesListsTheBusiest) {
  std::vector<std::string> hosts;
  std::vector<RankTime> times;
  for (Index i = 0; i < 1000; ++i) {
    hosts.push_back("n" + std::to_string(i));
    times.push_back({1000, static_cast<double>(i)});
  }
  const NodeGroups groups(hosts);
  const metrics::NodesRecord record = groups.record(times, 1, 1, std::vector(1000, false));
  EXPECT_EQ(record.count, 1000);
  ASSERT_EQ(record.rows.size(), static_cast<std::size_t>(metrics::max_node_rows));
  EXPECT_EQ(record.rows.front().host, "n0");
  EXPECT_EQ(record.rows.back().host, "n15");
  EXPECT_EQ(record.compute.min, 1) << "of all, not of the listed";
  EXPECT_EQ(record.compute.max, 1000);
}

}  // namespace
}  // namespace kzero::tests
