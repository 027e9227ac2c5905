#include "engine/verification.hpp"

#include <gtest/gtest.h>

#include <set>

#include "support/training.hpp"

namespace kzero::tests {
namespace {

/// The shifts of the verified steps of a run on `ranks` ranks, in order.
std::vector<Index> shifts(Index every, Index ranks, Index verified) {
  deck::Config config = small_deck();
  config.train.global_batch = ranks * config.train.micro_batch;
  const engine::Blueprint blueprint(resolved(config, ranks), ranks);
  const grid::ProcessGrid grid(first_ranks(1), 0, 1);
  const engine::Verification verification(every, blueprint, grid);
  std::vector<Index> found;
  for (Index step = 0; std::ssize(found) < verified; ++step) {
    if (verification.is_due(step)) found.push_back(verification.second(step).shift);
  }
  return found;
}

TEST(Verification, ComparesEveryRankWithEveryOther) {
  if (launch_ranks() > 1) GTEST_SKIP() << "needs one rank only";
  for (Index every = 1; every <= 12; ++every) {
    for (Index ranks = 2; ranks <= 8; ++ranks) {
      const auto found = shifts(every, ranks, ranks - 1);
      std::set<Index> expected;
      for (Index shift = 1; shift < ranks; ++shift) expected.insert(shift);
      EXPECT_EQ(std::set(found.begin(), found.end()), expected)
          << ranks << " ranks, every " << every << " steps";
    }
  }
  EXPECT_EQ(shifts(3, 1, 4), (std::vector<Index>{0, 0, 0, 0})) << "a rank alone repeats its own";
}

}  // namespace
}  // namespace kzero::tests
