#include "grid/process_grid.hpp"

#include <gtest/gtest.h>

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
