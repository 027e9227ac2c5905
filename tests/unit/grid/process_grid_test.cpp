#include "grid/process_grid.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <string>

#include "base/error.hpp"

namespace kzero::grid {

namespace {

int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

TEST(ProcessGrid, TensorRanksAreInnermost) {
  const int ranks = world_size();
  for (int tensor = 1; tensor <= ranks; ++tensor) {
    if (ranks % tensor != 0) continue;
    for (const int asked : {0, ranks / tensor}) {
      const ProcessGrid grid(asked, tensor);
      EXPECT_EQ(grid.world().size(), ranks);
      EXPECT_EQ(grid.tensor().size(), tensor);
      EXPECT_EQ(grid.data().size(), ranks / tensor);
      EXPECT_EQ(grid.world().rank(), grid.data().rank() * tensor + grid.tensor().rank());
      const auto peers = grid.tensor().all_gather(grid.world().rank());
      for (int r = 0; r < tensor; ++r) EXPECT_EQ(peers[r], grid.data().rank() * tensor + r);
      const auto replicas = grid.data().all_gather(grid.world().rank());
      for (int r = 0; r < ranks / tensor; ++r) {
        EXPECT_EQ(replicas[r], r * tensor + grid.tensor().rank());
      }
    }
  }
}

// The data group's order is that of the shards: first the first ranks of all nodes.
TEST(ProcessGrid, RanksOfOnePlaceOnTheirNodesAreNeighbours) {
  const int ranks = world_size();
  for (const int node_ranks : {1, 2, 4}) {
    if (ranks % node_ranks != 0) continue;
    std::vector<int> node_of_rank;
    for (int rank = 0; rank < ranks; ++rank) node_of_rank.push_back(rank / node_ranks);
    const ProcessGrid grid(0, 1, node_of_rank);
    const int nodes = ranks / node_ranks, me = grid.world().rank();
    EXPECT_EQ(grid.data().rank(), me % node_ranks * nodes + me / node_ranks);
    EXPECT_EQ(grid.world_rank(grid.data().rank(), 0), me);
    EXPECT_EQ(grid.data().shape().nodes, nodes);
    EXPECT_EQ(grid.data().shape().node_ranks, node_ranks);
    for (int r = 0; r < ranks; ++r) {
      EXPECT_EQ(grid.data().launch_rank(r), grid.world_rank(r, 0));
      EXPECT_EQ(grid.data().leaves_node(r), grid.world_rank(r, 0) / node_ranks != me / node_ranks);
    }
    EXPECT_EQ(grid.node().size(), node_ranks);
    EXPECT_EQ(grid.node().rank(), me % node_ranks);
    EXPECT_EQ(grid.node().launch_rank(0), me / node_ranks * node_ranks);
  }
}

TEST(NodeShape, IsRegularIfNodesHaveTheSameNumber) {
  const auto shape = [](const std::vector<int>& nodes, Index tensor) {
    const NodeShape found = shape_of_data_groups(nodes, tensor);
    return std::pair{found.nodes, found.node_ranks};
  };
  using Pair = std::pair<Index, Index>;
  EXPECT_EQ(shape({}, 1), Pair(1, 1));
  EXPECT_EQ(shape({0, 0, 0}, 1), Pair(1, 3));
  EXPECT_EQ(shape({0, 0, 1, 1}, 1), Pair(2, 2));
  EXPECT_EQ(shape({0, 1, 0, 1}, 1), Pair(2, 2)) << "ranks dealt to nodes in turn";
  EXPECT_EQ(shape({0, 1, 0, 1}, 2), Pair(1, 2)) << "each data group is on a node of its own";
  EXPECT_EQ(shape({0, 0, 0, 0, 1, 1, 1, 1}, 2), Pair(2, 2));
  EXPECT_EQ(shape({0, 0, 0, 1}, 1), Pair(0, 0));
  EXPECT_EQ(shape({0, 0, 1, 1, 2}, 1), Pair(0, 0));
  EXPECT_EQ(shape({0, 0, 0, 1, 1, 1, 1, 0}, 2), Pair(0, 0)) << "of another shape, the second group";
  EXPECT_EQ(shape({0, 0, 0, 0, 1, 1, 1, 2}, 2), Pair(0, 0)) << "the second group has a third node";
}

TEST(NodeShape, ShardsOfOnePlaceAreContiguous) {
  EXPECT_EQ(shard_order(std::vector{0, 0, 0, 1, 1, 1}, 2), (std::vector{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(shard_order(std::vector{0, 1, 0, 1}, 2), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(shard_order(std::vector{0, 0, 1}, 0), (std::vector{0, 1, 2})) << "not regular";
}

TEST(ProcessGrid, NamesItsGroups) {
  const ProcessGrid grid(0, 1);
  EXPECT_EQ(grid.world().name(), "world");
  EXPECT_EQ(grid.data().name(), "data");
  EXPECT_EQ(grid.tensor().name(), "tensor");
}

void expect_refused(Index data, Index tensor) {
  try {
    const ProcessGrid grid(data, tensor);
    FAIL() << data << " x " << tensor << " was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    const std::string text = error.what();
    for (const Index number : {data, tensor, Index{world_size()}}) {
      EXPECT_NE(text.find(std::to_string(number)), std::string::npos) << text;
    }
  }
}

TEST(ProcessGrid, SizesThatDoNotMatchTheLaunchAreErrors) {
  const Index ranks = world_size();
  expect_refused(0, ranks + 1);
  expect_refused(0, 2 * ranks);
  expect_refused(ranks + 1, 1);
  expect_refused(ranks, 2);
  if (ranks > 2) expect_refused(0, ranks - 1);
  if (ranks > 1) expect_refused(1, 1);
}

// MPICH has 2048 communicators per process. This test creates more, one after another. Two ranks
// are sufficient. More ranks than cores would mostly wait for each other.
TEST(ProcessGrid, FreesItsCommunicators) {
  if (world_size() > 2) GTEST_SKIP() << "runs on one or two ranks";
  for (int i = 0; i < 400; ++i) {
    const ProcessGrid grid(0, 1);
    EXPECT_THROW(ProcessGrid(0, world_size() + 1), Error);
    EXPECT_THROW(ProcessGrid(world_size() + 1, 1), Error);
  }
}

}  // namespace

}  // namespace kzero::grid
