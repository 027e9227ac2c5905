#include "plan/simulated_rank.hpp"

#include <gtest/gtest.h>

namespace kzero::plan {
namespace {

/// A message of `seconds` on the first link alone.
double begin(SimulatedRank& rank, double seconds, Stream stream) {
  LinkUse use{.seconds = seconds};
  use.uses.front() = {seconds, seconds};
  return rank.begin(use, {.stream = stream});
}

// A round may end while a message is in flight. The rounds after it then leave the link later.
TEST(SimulatedRank, MovesLinksAndStreamsWithRepeatedRounds) {
  SimulatedRank rank(true);
  const SimulatedRank::Mark start = rank.mark();
  rank.work(1, "forward", 0);
  EXPECT_EQ(begin(rank, 10, Stream::copies), 11);
  rank.repeat(start, 3);
  EXPECT_EQ(rank.now(), 4);
  SimulatedRank other = rank;
  EXPECT_EQ(begin(rank, 10, Stream::collectives), 24) << "the link is busy";
  EXPECT_EQ(other.begin({.seconds = 2}, {.stream = Stream::copies}), 16) << "the stream is busy";
}

}  // namespace
}  // namespace kzero::plan
