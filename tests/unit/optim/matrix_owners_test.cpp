#include "optim/matrix_owners.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kzero::optim {
namespace {

/// Costs in no order, some of them equal.
std::vector<double> costs(Index count) {
  std::vector<double> all;
  for (Index i = 0; i < count; ++i) all.push_back(static_cast<double>(1 + i * 37 % 11));
  return all;
}

TEST(MatrixOwners, GiveEveryTaskToOneRankOnce) {
  for (const Index count : {0, 1, 5, 48, 97}) {
    for (const Index ranks : {1, 2, 3, 7, 64, 200}) {
      const MatrixOwners owners(costs(count), ranks);
      std::vector<Index> seen(static_cast<std::size_t>(count));
      Index tasks = 0;
      for (Index rank = 0; rank < ranks; ++rank) {
        for (Index round = 0; round < owners.rounds(); ++round) {
          const Index task = owners.task(rank, round);
          if (task < 0) continue;
          EXPECT_EQ(owners.owner[task], rank);
          ++seen[task], ++tasks;
        }
        EXPECT_EQ(owners.task(rank, owners.rounds()), -1);
      }
      EXPECT_EQ(tasks, count);
      EXPECT_TRUE(std::ranges::all_of(seen, [](Index times) { return times == 1; }));
    }
  }
}

TEST(MatrixOwners, DivideTheWorkEvenly) {
  for (const Index ranks : {1, 2, 3, 7, 16}) {
    const auto all = costs(97);
    const MatrixOwners owners(all, ranks);
    double sum = 0;
    for (const double cost : all) sum += cost;
    // When the last task of the most loaded rank was assigned, no rank had more than the mean.
    const double max = std::ranges::max(owners.load);
    EXPECT_LE(max, sum / static_cast<double>(ranks) + std::ranges::max(all));
    EXPECT_NEAR(max, sum / static_cast<double>(ranks), 1.0) << "small tasks fill the gaps";
  }
}

TEST(MatrixOwners, ResolveTiesByNumber) {
  const MatrixOwners owners({2, 3, 2, 3, 2}, 2);
  EXPECT_EQ(owners.owner, (std::vector<Index>{0, 0, 1, 1, 0}));
  EXPECT_EQ(owners.tasks[0], (std::vector<Index>{1, 0, 4}));
  EXPECT_EQ(owners.tasks[1], (std::vector<Index>{3, 2}));
  EXPECT_EQ(owners.load, (std::vector<double>{7, 5}));
}

TEST(MatrixOwners, MoreRanksThanTasksLeaveSomeIdle) {
  const MatrixOwners owners({5, 7}, 4);
  EXPECT_EQ(owners.owner, (std::vector<Index>{1, 0}));
  EXPECT_EQ(owners.rounds(), 1);
  EXPECT_EQ(owners.task(2, 0), -1);
  EXPECT_EQ(owners.task(3, 0), -1);
}

}  // namespace
}  // namespace kzero::optim
