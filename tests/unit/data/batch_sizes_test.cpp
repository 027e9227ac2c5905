#include "data/batch_sizes.hpp"

#include <gtest/gtest.h>

namespace kzero::data {
namespace {

BatchSizes example() {
  deck::Train train;
  train.steps = 20;
  train.global_batch = 4;
  train.phases = {{.from_step = 3, .global_batch = 10}, {.from_step = 7, .global_batch = 6}};
  return BatchSizes(train);
}

TEST(BatchSizes, FollowOneAnotherWithoutAGap) {
  const BatchSizes sizes = example();
  EXPECT_EQ(sizes.phases(), (std::vector<Phase>{{0, 4, 0}, {3, 10, 12}, {7, 6, 52}}));
  Index next = 0;
  for (Index step = 0; step < 20; ++step) {
    const Index size = step < 3 ? 4 : step < 7 ? 10 : 6;
    EXPECT_EQ(sizes.size(step), size) << step;
    EXPECT_EQ(sizes.first_sample(step), next) << step;
    for (Index sample = next; sample < next + size; ++sample)
      EXPECT_EQ(sizes.step_of(sample), step) << sample;
    next += size;
  }
}

TEST(BatchSizes, AreThoseOfTheDeckWithoutPhases) {
  deck::Train train;
  train.global_batch = 5;
  const BatchSizes sizes(train);
  for (const Index step : {0, 1, 1000000}) {
    EXPECT_EQ(sizes.size(step), 5);
    EXPECT_EQ(sizes.first_sample(step), 5 * step);
    EXPECT_EQ(sizes.phase_of(step), 0);
  }
}

// A checkpoint knows its step and its next sample. The deck's phases of earlier steps do not count.
TEST(BatchSizes, ContinueWhereACheckpointEnds) {
  for (const Index step : {0, 2, 3, 5, 11}) {
    BatchSizes sizes = example();
    const Index first = sizes.first_sample(step);
    sizes.continue_at(step, 1000);
    for (Index later = step; later < 20; ++later)
      EXPECT_EQ(sizes.first_sample(later) - 1000, example().first_sample(later) - first) << later;
    EXPECT_EQ(sizes.step_of(1000), step);
  }
}

}  // namespace
}  // namespace kzero::data
