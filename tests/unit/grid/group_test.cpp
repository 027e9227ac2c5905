#include "grid/group.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <utility>

#include "base/error.hpp"

namespace kzero::grid {

namespace {

Group make_world() {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  return {copy, "world"};
}

/// Values whose sum depends on the order: large ones cancel, and small ones are lost between them.
double awkward(int rank) { return rank % 2 == 0 ? 1e16 + rank : -1e16 + 0.3 * rank; }

TEST(Group, SumsInRankOrder) {
  const Group group = make_world();
  double expected = 0;
  for (int r = 0; r < group.size(); ++r) expected += awkward(r);
  EXPECT_EQ(group.sum(awkward(group.rank())), expected);
}

TEST(Group, FindsTheLargestAndTheSmallest) {
  const Group group = make_world();
  const Index mine = (Index{1} << 40) - group.rank();
  EXPECT_EQ(group.max(mine), Index{1} << 40);
  EXPECT_EQ(group.min(mine), (Index{1} << 40) - (group.size() - 1));
}

TEST(Group, GathersNumbersEverywhereInRankOrder) {
  const Group group = make_world();
  const auto all = group.all_gather(0.1 * group.rank());
  ASSERT_EQ(static_cast<int>(all.size()), group.size());
  for (int r = 0; r < group.size(); ++r) EXPECT_EQ(all[r], 0.1 * r);
}

TEST(Group, GathersTextsOfAnyLengthOnTheRoot) {
  const Group group = make_world();
  const auto all =
      group.gather(std::string(group.rank() * 3, static_cast<char>('a' + group.rank())));
  if (!group.is_root()) {
    EXPECT_TRUE(all.empty());
    return;
  }
  ASSERT_EQ(static_cast<int>(all.size()), group.size());
  for (int r = 0; r < group.size(); ++r) {
    EXPECT_EQ(all[r], std::string(r * 3, static_cast<char>('a' + r)));
  }
}

TEST(Group, BroadcastsTheRootsText) {
  const Group group = make_world();
  const std::string deck(100000, 'x');
  EXPECT_EQ(group.broadcast(group.is_root() ? deck : "not this"), deck);
  EXPECT_EQ(group.broadcast(group.is_root() ? "" : "not this"), "");
}

TEST(Group, AgreesThatNothingIsWrong) {
  const Group group = make_world();
  EXPECT_NO_THROW(group.agree("", 4));
}

TEST(Group, AProblemOfSomeRanksIsAnErrorOnAll) {
  const Group group = make_world();
  const int lowest = group.size() / 2;
  const bool mine = group.rank() >= lowest;
  try {
    group.agree(mine ? "shard " + std::to_string(group.rank()) + " is bad" : "",
                mine ? static_cast<int>(ExitCode::files) : 0);
    FAIL() << "rank " << group.rank() << " went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::files);
    EXPECT_EQ(std::string(error.what()), "shard " + std::to_string(lowest) + " is bad");
  }
}

TEST(Group, AMovedGroupKeepsWorking) {
  Group first = make_world();
  const Group second(std::move(first));
  EXPECT_EQ(static_cast<MPI_Comm>(first.handle()), MPI_COMM_NULL);
  EXPECT_EQ(second.name(), "world");
  EXPECT_EQ(second.sum(1), second.size());
}

}  // namespace

}  // namespace kzero::grid
