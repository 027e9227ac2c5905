#include "zero/stage.hpp"

#include <gtest/gtest.h>

namespace kzero::zero {
namespace {

constexpr Placement replicated = Placement::replicated, partitioned = Placement::partitioned;

// Section 5 of the paper: P_os, P_os+g, P_os+g+p.
TEST(Stage, TableIsThePapers) {
  const Placement expected[4][3] = {{replicated, replicated, replicated},
                                    {replicated, replicated, partitioned},
                                    {replicated, partitioned, partitioned},
                                    {partitioned, partitioned, partitioned}};
  for (int number = 0; number < 4; ++number) {
    EXPECT_EQ(stage(number, 2).parameters, expected[number][0]) << number;
    EXPECT_EQ(stage(number, 2).gradients, expected[number][1]) << number;
    EXPECT_EQ(stage(number, 2).optimizer, expected[number][2]) << number;
  }
}

TEST(Stage, UpdatesAreGatheredWhereAnotherRankMakesThem) {
  for (const Index number : {0, 1, 2, 3})
    EXPECT_EQ(stage(number, 2).gathers_updates(), number == 1 || number == 2) << number;
  for (const Index number : {0, 1, 2, 3}) EXPECT_FALSE(stage(number, 1).gathers_updates());
}

TEST(Stage, OneCopyPerNodeIsPartitionedOverItsRanks) {
  EXPECT_EQ(stage(3, 8, 2).parameters, partitioned);
  EXPECT_EQ(stage(3, 8, 2).optimizer, partitioned);
  EXPECT_TRUE(stage(3, 8, 2).gathers_updates()) << "from the other node";
  EXPECT_FALSE(stage(3, 8, 1).gathers_updates());
  EXPECT_EQ(stage(3, 8, 8).parameters, replicated) << "one rank a node holds all";
  EXPECT_TRUE(stage(3, 8, 8).gathers_updates());
}

TEST(Stage, OnlyPartitionedParametersAreShared) {
  EXPECT_TRUE(stage(3, 8, 1, true).shared);
  EXPECT_TRUE(stage(3, 8, 2, true).shared);
  EXPECT_FALSE(stage(3, 8, 1, true).gathers_parameters());
  EXPECT_FALSE(stage(3, 8, 1, true).gathers_updates());
  EXPECT_TRUE(stage(3, 8, 2, true).gathers_updates()) << "from the other node";
  EXPECT_TRUE(stage(3, 8, 1, false).gathers_parameters());
  EXPECT_FALSE(stage(3, 8, 8, true).shared) << "one rank a node holds all";
  for (const Index number : {0, 1, 2}) EXPECT_FALSE(stage(number, 8, 1, true).shared);
  EXPECT_FALSE(stage(3, 1, 1, true).shared);
}

TEST(Stage, UnitsAreSharedWhereParametersAreNot) {
  EXPECT_EQ(stage(3, 8, 1, false, 4).unit_ranks, 4);
  EXPECT_TRUE(stage(3, 8, 1, false, 4).gathers_parameters());
  EXPECT_EQ(stage(3, 8, 2, true, 4).unit_ranks, 1) << "nothing is gathered";
  for (const Index number : {0, 1, 2}) EXPECT_EQ(stage(number, 8, 1, false, 4).unit_ranks, 1);
}

TEST(Stage, OfOneRankSharesNothing) {
  for (int number = 0; number < 4; ++number) {
    const Stage alone = stage(number, 1);
    EXPECT_EQ(alone.parameters, replicated);
    EXPECT_EQ(alone.gradients, replicated);
    EXPECT_EQ(alone.optimizer, replicated);
  }
}

TEST(Held, RangesOfAllRanksCoverEachElementOnce) {
  for (const Index elements : {1, 2, 3, 5, 64, 1000}) {
    for (const Index ranks : {1, 2, 3, 4, 7, 64}) {
      param::UnitLayout unit;
      unit.elements = elements;
      unit.padded = round_up(elements, ranks);
      unit.shard = unit.padded / ranks;
      Index end = 0;
      for (Index r = 0; r < ranks; ++r) {
        const Range range = held(partitioned, unit, r);
        EXPECT_EQ(range.begin, end) << elements << " elements, rank " << r << " of " << ranks;
        EXPECT_LE(range.end - range.begin, unit.shard);
        EXPECT_GE(range.end, range.begin);
        end = range.end;
        const Range whole = held(replicated, unit, r);
        EXPECT_EQ(whole.begin, 0);
        EXPECT_EQ(whole.end, elements);
      }
      EXPECT_EQ(end, elements);
    }
  }
}

}  // namespace
}  // namespace kzero::zero
