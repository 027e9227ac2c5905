// The node named for a failure on some ranks only. This program simulates several nodes. Its
// function replaces MPI's.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <string>

#include "grid/agreement.hpp"
#include "grid/process_grid.hpp"

namespace {

int ranks_of_node = 1 << 20;

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

}  // namespace

extern "C" int MPI_Get_processor_name(char* name, int* length) {
  *length = std::snprintf(name, MPI_MAX_PROCESSOR_NAME, "node%d", world_rank() / ranks_of_node);
  return MPI_SUCCESS;
}

namespace kzero::grid {
namespace {

class FailurePlace : public testing::Test {
 protected:
  ~FailurePlace() override { ranks_of_node = 1 << 20; }

  /// The error of ranks from `first`, as every rank reports it.
  std::string error_of_ranks_from(int first, ExitCode code) const {
    try {
      collectively(world, [&] {
        if (world.rank() >= first) fail(code, "c/latest: cannot be written");
      });
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    return "none";
  }

  const Group world = world_group();
  const int last = world.size() - 1;
  const std::string text = "c/latest: cannot be written";
};

TEST_F(FailurePlace, IsNamedOnSeveralNodes) {
  if (world.size() == 1) GTEST_SKIP() << "one node";
  ranks_of_node = 1;
  const std::string place = std::to_string(last);
  const std::string expected = text + " (rank " + place + " on node" + place + ")";
  for (const ExitCode code : {ExitCode::files, ExitCode::memory, ExitCode::other})
    EXPECT_EQ(error_of_ranks_from(last, code), expected);
}

TEST_F(FailurePlace, IsNotNamedOnOneNode) {
  EXPECT_EQ(error_of_ranks_from(last, ExitCode::files), text);
}

TEST_F(FailurePlace, IsNotNamedWhereAllRanksFail) {
  ranks_of_node = 1;
  EXPECT_EQ(error_of_ranks_from(0, ExitCode::files), text);
}

TEST_F(FailurePlace, IsNotNamedForWhatIsWrongWithTheDeck) {
  ranks_of_node = 1;
  EXPECT_EQ(error_of_ranks_from(last, ExitCode::usage), text);
}

TEST_F(FailurePlace, IsARankOfTheLaunchInAnyGroup) {
  if (world.size() < 4) GTEST_SKIP() << "too few ranks";
  ranks_of_node = 2;
  const Group half = world.part(world.rank() % 2, "half");  // ranks 0, 2, .. and 1, 3, ..
  try {
    collectively(half, [&] {
      if (half.rank() == 1) fail(ExitCode::files, "full");
    });
    FAIL() << "no error";
  } catch (const AgreedError& error) {
    const std::string rank = std::to_string(2 + world.rank() % 2);
    EXPECT_EQ(std::string(error.what()), "full (rank " + rank + " on node1)");
  }
}

}  // namespace
}  // namespace kzero::grid
