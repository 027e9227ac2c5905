// An optimizer unknown to kzero, with one array in addition to the master weights. It trains in
// every stage with the same bits, its plan follows its declaration, and its checkpoints move
// between any stages and numbers of ranks.
#include <gtest/gtest.h>
#include <mpi.h>

#include "run/restart_rules.hpp"
#include "support/checkpoints.hpp"
#include "support/error_text.hpp"
#include "support/momentum_sgd.hpp"
#include "support/outcome.hpp"

namespace kzero::tests {
namespace {

class OtherOptimizer : public testing::TestWithParam<Dtype> {
 protected:
  deck::Config deck_of(Index stage) const {
    deck::Config config = small_deck(GetParam());
    config.train.micro_batch = 0, config.train.global_batch = 12;  // for 1, 2, 3 and 4 ranks
    config.optimizer.lr = 0.05;
    config.zero.stage = stage;
    return config;
  }

  Training training_of(Index stage) const {
    return Training(deck_of(stage), group, deck::GemmBackend::automatic,
                    {.optimizer = momentum_sgd()});
  }

  const grid::Group group = first_ranks(launch_ranks());
};

TEST_P(OtherOptimizer, TrainsInEveryStageWithTheSameBits) {
  const Outcome expected = train_outcome(deck_of(0), group, {.optimizer = momentum_sgd()});
  EXPECT_LT(expected.numbers[15], expected.numbers[0] - 0.01) << "the fourth loss below the first";
  EXPECT_FALSE(expected.weights == train_outcome(deck_of(0), group).weights) << "it is not AdamW";
  for (const Index stage : {1, 2, 3})
    expect_same(train_outcome(deck_of(stage), group, {.optimizer = momentum_sgd()}), expected,
                "stage " + std::to_string(stage));
}

TEST_P(OtherOptimizer, HoldsWhatItDeclares) {
  const auto optimizer_bytes = [](const memory::Bytes& bytes) {
    return bytes[memory::position(memory::Category::optimizer)];
  };
  for (const Index stage : {0, 1, 2, 3}) {
    Training sgd = training_of(stage), adamw(deck_of(stage), group);
    EXPECT_EQ(sgd.engine->planned(), sgd.ledger.peaks());
    // In fp32 the master weights are the parameters: one array versus two, otherwise two versus
    // three.
    const Index arrays = GetParam() == Dtype::fp32 ? 1 : 2;
    EXPECT_EQ(optimizer_bytes(sgd.engine->planned()) * (arrays + 1),
              optimizer_bytes(adamw.engine->planned()) * arrays);
    for (const checkpoint::StateShard& shard : sgd.engine->owned_shards()) {
      ASSERT_TRUE(checkpoint::has_arrays(shard, {{"master"}, {"momentum"}}));
      EXPECT_FALSE(shard.values("momentum").empty());
    }
  }
}

TEST_P(OtherOptimizer, RestartsInAnotherStageBitForBit) {
  Training straight = training_of(0);
  straight.engine->initialise({});
  const auto expected = straight.run(0, 6);
  for (const auto& [from, to] : {std::pair<Index, Index>{0, 3}, {3, 0}, {1, 2}, {2, 1}}) {
    const SharedFolder folder(group);
    std::vector<engine::StepResult> results;
    {
      Training first = training_of(from);
      first.engine->initialise({});
      results = first.run(0, 3);
      save(first, group, folder.path(), 3);
    }
    Training second = training_of(to);
    ASSERT_EQ(load(second, group, folder.path()), 3);
    for (const auto& result : second.run(3, 6)) results.push_back(result);
    EXPECT_TRUE(same_bits(numbers_of(results), numbers_of(expected))) << from << " to " << to;
    EXPECT_EQ(owned_state(second), owned_state(straight)) << from << " to " << to;
  }
}

TEST_P(OtherOptimizer, OnOtherRanksLoadsTheSavedBits) {
  const int all = launch_ranks();
  const SharedFolder folder(group);
  for (const auto& [from, to] : {std::pair{all, 1}, {1, all}, {all, std::max(1, all - 1)}}) {
    const auto path = folder.path() / (std::to_string(from) + "to" + std::to_string(to));
    std::vector<float> saved;
    const grid::Group saving = first_ranks(from), loading = first_ranks(to);
    const auto training_on = [&](const grid::Group& ranks, Index stage) {
      return Training(deck_of(stage), ranks, deck::GemmBackend::automatic,
                      {.optimizer = momentum_sgd()});
    };
    if (is_among_first(from)) {
      Training training = training_on(saving, 0);
      training.engine->initialise({});
      training.run(0, 3);
      save(training, saving, path, 3);
      saved = training.state();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_among_first(to)) {
      // In stage 0 every rank holds the full state, as it did when the state was saved.
      Training training = training_on(loading, 0);
      ASSERT_EQ(load(training, loading, path), 3);
      if (is_among_first(from)) {
        EXPECT_TRUE(same_bits(training.state(), saved)) << from << " to " << to;
      }
      std::vector<std::string> problems;
      const auto found = checkpoint::open(loading, path, engine::saved_parameters, problems);
      Training cut = training_on(loading, 3);
      ASSERT_EQ(load(cut, loading, path), 3);
      checkpoint::require_saved_values(loading, found, cut.engine->owned_shards());
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_P(OtherOptimizer, DoesNotGoOnFromAdamWsState) {
  const SharedFolder folder(group);
  Training adamw(deck_of(2), group);
  adamw.engine->initialise({});
  save(adamw, group, folder.path(), 1);
  Training sgd = training_of(2);
  std::vector<std::string> problems;
  const auto found = checkpoint::open(group, folder.path(), engine::saved_parameters, problems);
  run::RunRequest request;
  request.config = sgd.config;
  const auto check = [&](const Training& training) {
    run::require_same_training(found, request, training.engine->blueprint(), {});
  };
  const std::string refusal = error_of(ExitCode::usage, [&] { check(sgd); });
  EXPECT_TRUE(contains(refusal,
                       "is of another optimizer: it holds master, first_moment, second_moment, the "
                       "deck's optimizer keeps master, momentum"))
      << refusal;
  EXPECT_NO_THROW(check(adamw));
  const std::string text = error_of(ExitCode::files, [&] { load(sgd, group, folder.path()); });
  EXPECT_TRUE(contains(text, "holds no state array momentum")) << text;
}

INSTANTIATE_TEST_SUITE_P(Precisions, OtherOptimizer,
                         testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
