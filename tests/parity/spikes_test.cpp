// Steps that are skipped because of their gradient norm, with groups and an average of the weights.
// Every rank decides the same, on any grid and after a restart.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>

#include "support/checkpoints.hpp"
#include "support/full_state.hpp"
#include "support/same_bits.hpp"

namespace kzero::tests {
namespace {

constexpr Index spike_steps = 14;

/// Norms vary from step to step, so a low factor skips some of the steps.
deck::Config spiky_deck(Dtype precision) {
  deck::Config config = small_deck(precision);
  config.model.layers = 2;
  config.train.steps = spike_steps;
  config.optimizer.loss_scale = 1024;  // no overflow
  config.optimizer.skip_above = 1.02, config.optimizer.skip_window = 3;
  config.optimizer.ema = 0.9;
  config.optimizer.groups = {{"*bias", 0.25, -1}};
  return config;
}

class Spikes : public testing::TestWithParam<Dtype> {};

TEST_P(Spikes, AreThoseOfAPlainLoopAndChangeNoState) {
  const grid::Group group = first_ranks(launch_ranks());
  Training training(spiky_deck(GetParam()), group);
  training.engine->initialise({});
  std::vector<double> applied;
  Index skipped = 0;
  for (Index step = 0; step < spike_steps; ++step) {
    const std::string before = owned_state(training);
    const engine::StepResult result = training.step(step);
    ASSERT_EQ(result.norm_limit.has_value(), applied.size() >= 3) << step;
    bool is_spike = false;
    if (result.norm_limit) {
      std::array<double, 3> last{};
      std::copy(applied.end() - 3, applied.end(), last.begin());
      std::ranges::sort(last);
      EXPECT_EQ(*result.norm_limit, 1.02 * last[1]) << step;
      is_spike = result.grad_norm > 1.02 * last[1];
    }
    EXPECT_EQ(result.skipped, is_spike) << step;
    EXPECT_EQ(result.is_spike(), is_spike) << step;
    EXPECT_EQ(owned_state(training) == before, is_spike) << step;
    if (is_spike) ++skipped;
    if (!is_spike) applied.push_back(result.grad_norm);
  }
  EXPECT_GT(skipped, 1) << "the case tests no spikes";
  EXPECT_LT(skipped, spike_steps - 4) << "the case applies too few steps";
  EXPECT_EQ(training.engine->spike_rule().skipped(), skipped);
  EXPECT_EQ(training.engine->scaler().skipped(), skipped);
}

// A norm that is not finite would make the limit infinite, and the rule would be off.
TEST(Spikes, OverflowsDoNotCountAmongTheNorms) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = spiky_deck(Dtype::fp16);
  config.optimizer.loss_scale = 0x1p24, config.optimizer.skip_above = 1000;
  Training training(config, group);
  training.engine->initialise({});
  std::vector<double> applied;
  Index overflows = 0;
  for (Index step = 0; step < spike_steps; ++step) {
    const engine::StepResult result = training.step(step);
    EXPECT_EQ(result.norm_limit.has_value(), applied.size() >= 3) << step;
    EXPECT_EQ(result.skipped, !std::isfinite(result.grad_norm)) << step;
    EXPECT_FALSE(result.is_spike()) << step;
    if (result.skipped) ++overflows;
    if (!result.skipped) applied.push_back(result.grad_norm);
  }
  EXPECT_GT(overflows, 0) << "the case tests no overflow";
  ASSERT_GT(applied.size(), 3U) << "the case applies too few steps";
  EXPECT_EQ(training.engine->spike_rule().norms(), std::vector(applied.end() - 3, applied.end()));
}

struct SpikyRun {
  std::vector<double> numbers;
  FullState state;
};

/// The run on the first ranks in two parts, with a restart between them. Empty on other ranks.
SpikyRun spiky_run(deck::Config config, int ranks, Index stop, Index stage, int later_ranks,
                   Index later_stage) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder folder(world);
  std::vector<engine::StepResult> results;
  const grid::Group before = first_ranks(ranks);
  if (is_among_first(ranks)) {
    config.zero.stage = stage;
    Training first(config, before);
    first.engine->initialise({});
    results = first.run(0, stop);
    save(first, before, folder.path(), stop);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  SpikyRun run;
  const grid::Group after = first_ranks(later_ranks);
  if (is_among_first(later_ranks)) {
    config.zero.stage = later_stage;
    Training second(config, after);
    EXPECT_EQ(load(second, after, folder.path()), stop);
    const auto more = second.run(stop, spike_steps);
    results.insert(results.end(), more.begin(), more.end());
    run.state = full_state(second.engine->owned_shards(), after);
  }
  run.numbers = numbers_of(results);
  MPI_Barrier(MPI_COMM_WORLD);
  return run;
}

TEST_P(Spikes, AreTheSameOnAnyGridAndAfterARestart) {
  const deck::Config config = spiky_deck(GetParam());
  const SpikyRun expected = spiky_run(config, 1, 7, 0, 1, 0);
  const int all = launch_ranks();
  // Before the window is full, and with skipped steps before and after.
  for (const Index stop : {2, 6, 10}) {
    for (const auto& [from, stage, to, later] :
         {std::tuple{1, 0, all, 3}, {all, 3, 1, 1}, {all, 2, std::max(1, all - 1), 0}}) {
      const SpikyRun found = spiky_run(config, from, stop, stage, to, later);
      if (!is_among_first(1)) continue;  // only rank 0 took part in all runs
      EXPECT_TRUE(same_bits(found.numbers, expected.numbers))
          << from << " to " << to << " ranks after " << stop << " steps";
      EXPECT_TRUE(same_bits(found.state, expected.state))
          << from << " to " << to << " ranks after " << stop << " steps";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Spikes, testing::Values(Dtype::fp32, Dtype::fp16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
