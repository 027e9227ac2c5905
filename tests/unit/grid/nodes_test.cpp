#include "grid/nodes.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "grid/process_grid.hpp"

namespace kzero::grid {
namespace {

TEST(Nodes, HaveAllRanksOfThisMachineOnOne) {
  const Group world = world_group();
  const Nodes nodes(world, "somewhere");
  ASSERT_EQ(nodes.count(), 1);
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(nodes.ranks(0), all);
  EXPECT_EQ(nodes.first_rank(0), 0);
  for (int rank = 0; rank < world.size(); ++rank) {
    EXPECT_EQ(nodes.of(rank), 0);
    EXPECT_EQ(nodes.host(rank), "somewhere");
  }
}

TEST(Nodes, AreDescribedByNameAndRanks) {
  const Group world = world_group();
  const Nodes nodes(world, "node3");
  EXPECT_EQ(nodes.describe(0), world.size() == 1
                                   ? "node3 (rank 0)"
                                   : "node3 (ranks 0 to " + std::to_string(world.size() - 1) + ")");
}

}  // namespace
}  // namespace kzero::grid
