#include "comm/placement.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "grid/process_grid.hpp"
#include "runtime/host_name.hpp"

namespace kzero::comm {
namespace {

bool leaves(const std::vector<int>& node_of_rank, Index tensor) {
  deck::Config config;
  config.grid.tensor = tensor;
  return placement_on(node_of_rank, config, std::ssize(node_of_rank)).data_nodes != 1;
}

TEST(Placement, DataGroupsLeaveNodesIfAnyOfThemHasRanksOnSeveral) {
  EXPECT_FALSE(leaves({}, 1)) << "not known";
  EXPECT_FALSE(leaves({0}, 1));
  EXPECT_FALSE(leaves({0, 0, 0, 0}, 1));
  EXPECT_TRUE(leaves({0, 0, 1, 1}, 1));
  EXPECT_TRUE(leaves({0, 1, 0, 1}, 1));
  // A single data-parallel rank has no data group to leave a node, wherever its tensor ranks are.
  EXPECT_FALSE(leaves({0, 0, 1, 1}, 4));
  EXPECT_TRUE(leaves({0, 0, 1, 1}, 2));
  // Ranks are dealt to nodes in turn: one node has all first tensor ranks, the other all second
  // ones.
  EXPECT_FALSE(leaves({0, 1, 0, 1}, 2));
  EXPECT_TRUE(leaves({0, 0, 0, 1}, 2)) << "one data group of two";
}

TEST(Placement, OfAPlanFillsNodesInOrder) {
  EXPECT_EQ(filled_nodes(8, 8), std::vector<int>(8, 0));
  EXPECT_EQ(filled_nodes(8, 4), (std::vector{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(filled_nodes(8, 3), (std::vector{0, 0, 0, 1, 1, 1, 2, 2}));
  EXPECT_EQ(filled_nodes(5, 2), (std::vector{0, 0, 1, 1, 2}));
}

TEST(Placement, FollowsGridNodeRatherThanWhatWasFound) {
  deck::Config config;
  config.grid.node = 2;
  const deck::Placement placed = placement_on({0, 0, 0, 0}, config, 4);
  EXPECT_EQ(placed.node_of_rank, (std::vector{0, 0, 1, 1}));
  EXPECT_EQ(placed.data_nodes, 2);
}

/// The tests' ranks are on one machine, with one thread each.
TEST(Placement, OfThisLaunchIsOneNode) {
  const grid::Group world = grid::world_group();
  const grid::Nodes nodes(world, runtime::host_name());
  std::vector<int> node_of_rank;
  for (int rank = 0; rank < world.size(); ++rank) node_of_rank.push_back(nodes.of(rank));
  EXPECT_FALSE(leaves(node_of_rank, 1));
}

TEST(Placement, CoresAreSharedIfThreadsAreMore) {
  EXPECT_FALSE(shares_cores({.ranks = 2, .threads = 1, .cores = 2}));
  EXPECT_TRUE(shares_cores({.ranks = 4, .threads = 1, .cores = 2}));
  EXPECT_TRUE(shares_cores({.ranks = 2, .threads = 2, .cores = 3}));
  EXPECT_FALSE(shares_cores({.ranks = 2, .threads = 2, .cores = 0})) << "unknown";
}

TEST(CommunicatorOf, AutoIsMpiIfRanksShareADevice) {
  using deck::CommunicatorKind;
  deck::Config config;
  for (const auto kind :
       {CommunicatorKind::automatic, CommunicatorKind::mpi, CommunicatorKind::nccl}) {
    config.run.communicator = kind;
    EXPECT_EQ(communicator_of(config), kind);
    EXPECT_EQ(communicator_note(config), "");
  }
  config.placement.shared_device = "ranks 0 and 1 share device 0000:18:00.0 of node3";
  for (const auto kind : {CommunicatorKind::mpi, CommunicatorKind::nccl}) {
    config.run.communicator = kind;
    EXPECT_EQ(communicator_of(config), kind) << "what was asked for is kept or refused";
    EXPECT_EQ(communicator_note(config), "");
  }
  config.run.communicator = CommunicatorKind::automatic;
  EXPECT_EQ(communicator_of(config), CommunicatorKind::mpi);
  EXPECT_FALSE(moves_by_itself(config));
  EXPECT_EQ(communicator_note(config),
            "messages go over MPI (run.communicator = \"auto\"): ranks 0 and 1 share device "
            "0000:18:00.0 of node3, and NCCL needs a device for each rank");
}

TEST(Overlap, OverMpiIsOnWhereMessagesLeaveANode) {
  deck::Config config;
  config.run.communicator = deck::CommunicatorKind::mpi;
  EXPECT_EQ(overlap_of(config), Overlap::no);
  EXPECT_EQ(overlap_alongside(config), Overlap::no);
  config.placement.shares_cores = true;
  EXPECT_EQ(overlap_of(config), Overlap::no) << "buffers on one node stay as they are";
  config.placement = placement_on({0, 1}, config, 2);
  config.placement.shares_cores = true;
  EXPECT_EQ(overlap_of(config), Overlap::yes);
  EXPECT_EQ(overlap_alongside(config), Overlap::alongside);
  config.zero.overlap = deck::Overlap::off;
  EXPECT_EQ(overlap_of(config), Overlap::no);
  config.placement = {};
  config.zero.overlap = deck::Overlap::on;
  EXPECT_EQ(overlap_of(config), Overlap::yes);
}

TEST(Overlap, WithoutItRanksThatShareCoresYield) {
  deck::Config config;
  EXPECT_EQ(waits_of(config), Waits::spin);
  config.placement.shares_cores = true;
  EXPECT_EQ(waits_of(config), Waits::yield);
}

}  // namespace
}  // namespace kzero::comm
