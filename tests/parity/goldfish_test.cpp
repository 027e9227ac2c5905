// Promise 1 for goldfish loss: the targets that it leaves out depend on the text alone, so training
// has the same bits on any number of ranks and in any stage, and the mean is over those that are
// left.
#include <gtest/gtest.h>

#include <cmath>

#include "support/checkpoints.hpp"
#include "support/full_result.hpp"
#include "support/outcome.hpp"

namespace kzero::tests {
namespace {

deck::Config goldfish_deck() {
  deck::Config config = small_deck();
  config.model.layers = 2;
  config.data.goldfish_k = 3, config.data.goldfish_h = 2;
  config.train.global_batch = 12;
  return config;
}

TEST(GoldfishLoss, DoesNotShowTheNumberOfRanks) {
  deck::Config streams = goldfish_deck(), divided = goldfish_deck();
  divided.data.end_token = 7;
  for (deck::Config tried : {streams, divided, as_llama(streams, 1)}) {
    for (const Index micro_batch : {1, 2}) {
      tried.train.micro_batch = micro_batch;
      tried.zero.stage = 0;
      const auto expected = planned_result_on(tried, 1, "goldfish");
      Index stage = micro_batch;
      for (const int data : {2, 3, 4, 8}) {
        if (data > launch_ranks() || data > 12 / micro_batch) continue;
        tried.zero.stage = ++stage % 4;
        expect_same(planned_result_on(tried, data, "goldfish"), expected,
                    std::to_string(data) + " ranks, stage " + std::to_string(tried.zero.stage));
      }
      if (launch_ranks() > 1) continue;
      for (const Index alone : {1, 2, 3}) {
        tried.zero.stage = alone;
        expect_same(planned_result_on(tried, 1, "goldfish"), expected,
                    "stage " + std::to_string(alone));
      }
    }
  }
}

TEST(GoldfishLoss, DoesNotShowRanksThatShareSequences) {
  deck::Config config = goldfish_deck();
  config.model.heads = 8, config.model.hidden = 24, config.model.feed_forward = 53;
  config.model.sequence = 16;
  config.train.sequence_chunks = 8;
  const auto expected = planned_result_on(config, 1, "goldfish");
  for (const int data : {2, 4}) {
    if (data != launch_ranks()) continue;
    for (Index sequence = 2; sequence <= data; sequence *= 2) {
      config.grid.sequence = sequence;
      config.zero.stage = 3;
      expect_same(planned_result_on(config, data, "goldfish"), expected,
                  std::to_string(sequence) + " sequence ranks of " + std::to_string(data));
    }
  }
}

TEST(GoldfishLoss, IsTheMeanOverTheTargetsThatAreLeft) {
  const grid::Group world = first_ranks(launch_ranks());
  deck::Config config = goldfish_deck();
  Training training(config, world);
  training.engine->initialise({});
  const data::BatchSource& samples = *training.dataset.training;
  const Index targets = samples.targets(0, 12).value();
  EXPECT_LT(targets, 12 * 12);
  EXPECT_GT(targets, 12 * 13 / 2);
  const double expected = training.engine->evaluate(12, samples);
  const engine::StepResult first = training.run(0, 1).front();
  EXPECT_EQ(first.targets, targets);
  EXPECT_NEAR(first.loss, expected, 1e-6 * expected);
  config.data.goldfish_k = 0, config.data.goldfish_h = deck::Data().goldfish_h;
  Training other(config, world);
  other.engine->initialise({});
  EXPECT_GT(std::abs(other.run(0, 1).front().loss - first.loss), 1e-5 * expected);
}

TEST(GoldfishLoss, IsTheSameAfterARestart) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder folder(world);
  deck::Config config = goldfish_deck();
  Training straight(config, world);
  straight.engine->initialise({});
  straight.run(0, 2);
  save(straight, world, folder.path(), 2);
  config.zero.stage = 3;
  Training again(config, world);
  ASSERT_EQ(load(again, world, folder.path()), 2);
  EXPECT_TRUE(same_bits(numbers_of(again.run(2, 5)), numbers_of(straight.run(2, 5))));
}

}  // namespace
}  // namespace kzero::tests
