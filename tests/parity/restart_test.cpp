// A run that stops and resumes from its checkpoint gives the same results as a run without a stop.
#include <gtest/gtest.h>
#include <mpi.h>

#include "support/checkpoints.hpp"
#include "support/same_bits.hpp"

namespace kzero::tests {
namespace {

namespace fs = std::filesystem;

/// In fp16 the initial loss scale overflows for some steps, and the window is short enough for the
/// scale to double again.
deck::Config deck_of(Dtype precision) {
  deck::Config config = small_deck(precision);
  config.train.steps = 12;
  config.optimizer.loss_scale = 0x1p24;
  config.optimizer.loss_scale_window = 3;
  return config;
}

class Restart : public testing::TestWithParam<Dtype> {};

TEST_P(Restart, IsBitForBitWhereverTheRunStopped) {
  const grid::Group group = first_ranks(launch_ranks());
  const deck::Config config = deck_of(GetParam());
  const Index steps = config.train.steps;
  Training straight(config, group);
  straight.engine->initialise({});
  const auto expected = straight.run(0, steps);
  const Index skipped = straight.engine->scaler().skipped();
  if (GetParam() == Dtype::fp16) {
    ASSERT_TRUE(expected[1].skipped && !expected[steps - 1].skipped)
        << "the case does not test skipping";
  } else {
    EXPECT_EQ(skipped, 0);
  }
  // Before the first step, between skipped steps, within the window of the scale, and before the
  // last step.
  for (const Index stop : {Index{0}, Index{1}, skipped + 1, steps - 1}) {
    const SharedFolder folder(group);
    std::vector<engine::StepResult> results;
    {
      Training first(config, group);
      first.engine->initialise({});
      results = first.run(0, stop);
      save(first, group, folder.path(), stop);
    }
    Training second(config, group);
    ASSERT_EQ(load(second, group, folder.path()), stop);
    for (const auto& result : second.run(stop, steps)) results.push_back(result);
    EXPECT_TRUE(same_bits(numbers_of(results), numbers_of(expected))) << "stopped after " << stop;
    EXPECT_TRUE(same_bits(second.state(), straight.state())) << "stopped after " << stop;
    EXPECT_EQ(second.engine->scaler().skipped(), skipped);
  }
}

// A checkpoint is independent of the stage. A run resumes in another stage as if it had always used
// it.
TEST_P(Restart, InAnotherStageIsBitForBit) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = deck_of(GetParam());
  const Index steps = config.train.steps, stop = steps / 2;
  Training straight(config, group);
  straight.engine->initialise({});
  const auto expected = straight.run(0, steps);
  for (const auto& [from, to] : {std::pair<Index, Index>{0, 3}, {3, 0}, {1, 2}, {2, 1}, {3, 3}}) {
    const SharedFolder folder(group);
    std::vector<engine::StepResult> results;
    {
      config.zero.stage = from;
      Training first(config, group);
      first.engine->initialise({});
      results = first.run(0, stop);
      save(first, group, folder.path(), stop);
    }
    config.zero.stage = to;
    Training second(config, group);
    ASSERT_EQ(load(second, group, folder.path()), stop);
    for (const auto& result : second.run(stop, steps)) results.push_back(result);
    EXPECT_TRUE(same_bits(numbers_of(results), numbers_of(expected))) << from << " to " << to;
    EXPECT_EQ(owned_state(second), owned_state(straight)) << from << " to " << to;
  }
}

TEST_P(Restart, SavingLeavesTheRunAsItWas) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder folder(group);
  Training saving(deck_of(GetParam()), group), plain(deck_of(GetParam()), group);
  saving.engine->initialise({});
  plain.engine->initialise({});
  for (Index s = 0; s < 5; ++s) {
    EXPECT_TRUE(same_bits(numbers_of({saving.step(s)}), numbers_of({plain.step(s)})));
    save(saving, group, folder.path(), s + 1);
  }
  EXPECT_TRUE(same_bits(saving.state(), plain.state()));
}

// The data that a thread writes must not change while training continues.
TEST_P(Restart, ASnapshotStaysWhileTrainingGoesOn) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = deck_of(GetParam());
  config.checkpoint.folder = "unused";
  config.checkpoint.asynchronous = true;
  Training training(config, group);
  training.engine->initialise({});
  training.run(0, config.train.steps / 2);
  const std::string expected = owned_state(training);
  const auto snapshot = training.engine->snapshot();
  training.run(config.train.steps / 2, config.train.steps);
  std::string bytes;
  for (const checkpoint::StateShard& shard : snapshot) {
    for (const auto& [name, part] : shard.arrays)
      bytes.append(reinterpret_cast<const char*>(part.data()), part.size_bytes());
  }
  EXPECT_TRUE(bytes == expected);
  EXPECT_FALSE(owned_state(training) == expected);
}

// With another number of ranks, gradients are summed in another order, so only the loaded state has
// the same bits. The first loss is that of the same weights on the same sequences, with one
// micro-batch per sequence. Only the order of its fp64 sum differs.
TEST_P(Restart, OnOtherRanksLoadsTheSavedBits) {
  const int all = launch_ranks();
  const grid::Group world = first_ranks(all);
  const SharedFolder folder(world);
  constexpr Index stop = 6;
  std::vector<float> saved;
  double next_loss = 0;
  const auto with_ranks = [&](int ranks, const auto& f) {
    const grid::Group group = first_ranks(ranks);
    if (is_among_first(ranks)) f(group);
    MPI_Barrier(MPI_COMM_WORLD);
  };
  for (const auto& [from, to] :
       {std::pair{all, 1}, std::pair{1, all}, std::pair{all, std::max(1, all / 2)}}) {
    const std::string what = std::to_string(from) + "to" + std::to_string(to);
    const fs::path path = folder.path() / what;
    with_ranks(from, [&](const grid::Group& group) {
      Training training(deck_of(GetParam()), group);
      training.engine->initialise({});
      training.run(0, stop);
      save(training, group, path, stop);
      saved = training.state();
      next_loss = training.step(stop).loss;
    });
    with_ranks(to, [&, saving = from](const grid::Group& group) {
      Training training(deck_of(GetParam()), group);
      const Index step = load(training, group, path);
      // Ranks that did not take part in saving have nothing to compare with.
      if (!is_among_first(saving)) {
        training.step(step);
        return;
      }
      EXPECT_TRUE(same_bits(training.state(), saved)) << what;
      EXPECT_NEAR(training.step(step).loss, next_loss, 1e-14 * next_loss) << what;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Restart,
                         testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
