// Promise 1 with dropout and z-loss: masks depend on places in the model and in the training, so
// training gives the same bits on any number of ranks, in any stage, with any recomputation, and
// after a restart.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "support/checkpoints.hpp"
#include "support/full_result.hpp"
#include "support/outcome.hpp"

namespace kzero::tests {
namespace {

deck::Config dropout_deck(Dtype precision = Dtype::fp32) {
  deck::Config config = small_deck(precision);
  config.model.layers = 2;
  config.model.dropout = 0.2, config.model.attention_dropout = 0.3;
  config.train.z_loss = 1e-3;
  config.train.global_batch = 12;
  return config;
}

class Dropout : public testing::TestWithParam<Dtype> {};

TEST_P(Dropout, DoesNotShowRanksAndStages) {
  for (deck::Config config : {dropout_deck(GetParam()), as_llama(dropout_deck(GetParam()), 1)}) {
    for (const Index micro_batch : {1, 2}) {
      config.train.micro_batch = micro_batch;
      config.zero.stage = 0;
      const auto expected = planned_result_on(config, 1, "dropout");
      Index stage = micro_batch;
      for (const int ranks : {2, 3, 4}) {
        if (ranks > launch_ranks()) continue;
        config.zero.stage = ++stage % 4;
        expect_same(planned_result_on(config, ranks, "dropout"), expected,
                    std::to_string(ranks) + " ranks, stage " + std::to_string(config.zero.stage));
      }
      if (launch_ranks() > 1) continue;
      config.zero.stage = 3;
      expect_same(planned_result_on(config, 1, "dropout"), expected, "stage 3");
    }
  }
}

TEST_P(Dropout, DoesNotShowRecomputation) {
  const grid::Group group = first_ranks(launch_ranks());
  for (deck::Config config : {dropout_deck(GetParam()), as_llama(dropout_deck(GetParam()), 1)}) {
    config.train.micro_batch = 1;
    const Outcome expected = train_outcome(config, group);
    for (const deck::Recompute& recompute :
         {deck::Recompute{.mode = deck::RecomputeMode::layernorm_gelu},
          deck::Recompute{.mode = deck::RecomputeMode::full},
          deck::Recompute{.mode = deck::RecomputeMode::full, .offload = deck::Offload::host}}) {
      config.recompute = recompute;
      expect_same(train_outcome(config, group), expected, std::string(name_of(recompute.mode)));
    }
  }
}

TEST_P(Dropout, DoesNotShowAStopAndVerification) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = dropout_deck(GetParam());
  config.train.micro_batch = 1, config.train.steps = 6;
  constexpr Index stop = 3;
  Training straight(config, group);
  straight.engine->initialise({});
  const auto expected = straight.run(0, config.train.steps);
  const SharedFolder folder(group);
  config.run.verify_every = 2;  // computes micro-batches twice, on different ranks
  std::vector<engine::StepResult> results;
  {
    Training first(config, group);
    first.engine->initialise({});
    results = first.run(0, stop);
    save(first, group, folder.path(), stop);
  }
  config.zero.stage = 3;
  Training second(config, group);
  ASSERT_EQ(load(second, group, folder.path()), stop);
  for (const auto& result : second.run(stop, config.train.steps)) results.push_back(result);
  EXPECT_TRUE(same_bits(numbers_of(results), numbers_of(expected)));
}

// Neither term is without effect on the weights.
TEST_P(Dropout, AndZLossChangeTheTraining) {
  const grid::Group group = first_ranks(launch_ranks());
  const deck::Config both = dropout_deck(GetParam());
  deck::Config dropout = both, z_loss = both;
  dropout.train.z_loss = 0;
  z_loss.model.dropout = z_loss.model.attention_dropout = 0;
  const Outcome expected = train_outcome(both, group);
  EXPECT_NE(train_outcome(dropout, group).weights, expected.weights);
  EXPECT_NE(train_outcome(z_loss, group).weights, expected.weights);
}

// Every tensor rank draws for its own heads, numbered in the full model.
TEST(Dropout, OfHeadsIsThatOfOneTensorRank) {
  const auto tensor = launch_ranks() % 2 == 0 ? 2 : 1;
  if (tensor == 1) GTEST_SKIP() << "needs two ranks";
  deck::Config config = dropout_deck();
  config.model.heads = 4, config.model.hidden = 24, config.model.dropout = 0;
  for (deck::Config tried : {config, as_llama(config, 2)}) {
    tried.grid.tensor = 1;
    const auto one = planned_result_on(tried, 1, "dropout of heads");
    tried.grid.tensor = tensor;
    const auto several = planned_result_on(tried, tensor, "dropout of heads");
    if (!one || !several) continue;
    for (std::size_t i = 0; i < one->numbers.size(); ++i)
      EXPECT_NEAR(several->numbers[i], one->numbers[i], 2e-5 * std::abs(one->numbers[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Dropout, testing::Values(Dtype::fp32, Dtype::bf16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
