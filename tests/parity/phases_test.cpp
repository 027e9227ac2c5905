// Batches whose size changes with the step (train.phase): the same bits as of trainings with one
// size each that follow one another, on any number of ranks, in any stage, and after a restart
// anywhere. No sample is repeated or left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "engine/expected_traffic.hpp"
#include "shifted_source.hpp"
#include "support/checkpoints.hpp"
#include "support/full_result.hpp"

namespace kzero::tests {
namespace {

/// Up to three ranks have one round in a step, then several, then one.
deck::Config phases_deck(Dtype precision) {
  deck::Config config = small_deck(precision);
  config.model.layers = 1;
  config.train.global_batch = 3;
  config.train.phases = {{.from_step = 2, .global_batch = 12}, {.from_step = 5, .global_batch = 4}};
  return config;
}

/// The deck of one phase alone.
deck::Config deck_of_one_phase(deck::Config config, const data::Phase& phase) {
  config.train.global_batch = phase.size;
  config.train.phases.clear();
  return config;
}

/// Records which samples a rank reads.
struct RecordingSource : ShiftedSource {
  explicit RecordingSource(const data::BatchSource& from) : ShiftedSource(from, 0) {}

  void batch(Index first, Index count, Token* inputs, Token* targets) const override {
    for (Index i = 0; i < count; ++i) read.push_back(static_cast<double>(first + i));
    ShiftedSource::batch(first, count, inputs, targets);
  }

  mutable std::vector<double> read;
};

class Phases : public testing::TestWithParam<Dtype> {};

TEST_P(Phases, AreAsTrainingsOfOneSizeThatFollowOneAnother) {
  const grid::Group group = first_ranks(std::min(launch_ranks(), 3));
  if (!is_among_first(std::min(launch_ranks(), 3))) return;
  for (const Index stage : {0, 3}) {
    deck::Config config = phases_deck(GetParam());
    config.zero.stage = stage;
    Training straight(config, group);
    straight.engine->initialise({});
    const std::vector<engine::StepResult> expected = straight.run(0, config.train.steps);
    const SharedFolder folder(group);
    std::vector<engine::StepResult> results;
    const std::vector<data::Phase> phases = straight.engine->batch_sizes().phases();
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const Index begin = phases[i].first_step;
      const Index end = i + 1 < phases.size() ? phases[i + 1].first_step : config.train.steps;
      Training part(deck_of_one_phase(config, phases[i]), group);
      if (i == 0) {
        part.engine->initialise({});
      } else {
        const auto at = folder.path() / ("step_0000000" + std::to_string(begin));
        ASSERT_EQ(load(part, group, at), begin);
      }
      part.engine->batch_sizes().continue_at(begin, phases[i].first_sample);
      for (const engine::StepResult& result : part.run(begin, end)) results.push_back(result);
      save(part, group, folder.path(), end);
      if (end == config.train.steps) {
        EXPECT_EQ(owned_state(part), owned_state(straight)) << "stage " << stage;
      }
    }
    EXPECT_TRUE(same_bits(numbers_of(results), numbers_of(expected))) << "stage " << stage;
  }
}

TEST_P(Phases, DoNotShowTheNumberOfRanks) {
  const deck::Config alone = phases_deck(GetParam());
  const auto expected = planned_result_on(alone, 1, "one rank", alone.train.steps);
  for (const Index stage : {0, 1, 2, 3}) {
    for (const int ranks : {2, 3}) {
      if (ranks > launch_ranks()) continue;
      deck::Config config = alone;
      config.zero.stage = stage;
      config.zero.bucket = stage % 2 == 0 ? 3001 : 1 << 20;
      const std::string what = std::to_string(ranks) + " ranks, stage " + std::to_string(stage);
      expect_same(planned_result_on(config, ranks, what, config.train.steps), expected, what);
    }
  }
}

// A node adds its gradients itself in phases with whole blocks only, so routes change with the
// phase.
TEST_P(Phases, DoNotShowNodes) {
  if (launch_ranks() < 4) return;
  deck::Config alone = phases_deck(GetParam());
  alone.train.global_batch = 4;
  alone.train.phases = {{.from_step = 1, .global_batch = 16}, {.from_step = 3, .global_batch = 6}};
  const auto expected = planned_result_on(alone, 1, "one rank", 5);
  for (const Index stage : {0, 3}) {
    deck::Config config = alone;
    config.grid.node = 2, config.zero.stage = stage;
    config.zero.gradients = deck::KeepsSums::nodes;
    const std::string what = "two nodes, stage " + std::to_string(stage);
    expect_same(planned_result_on(config, 4, what, 5), expected, what);
  }
}

TEST_P(Phases, ReadEachSampleOnce) {
  const int ranks = std::min(launch_ranks(), 3);
  const grid::Group group = first_ranks(ranks);
  if (!is_among_first(ranks)) return;
  Training training(phases_deck(GetParam()), group);
  training.engine->initialise({});
  const RecordingSource samples(*training.dataset.training);
  for (Index step = 0; step < training.config.train.steps; ++step)
    training.engine->step(step, samples);
  std::vector<double> mine(60, 0);
  for (const double sample : samples.read) ++mine.at(static_cast<std::size_t>(sample));
  std::vector<double> all = group.all_gather(mine), sums(60, 0), expected(60, 0);
  for (std::size_t i = 0; i < all.size(); ++i) sums[i % 60] += all[i];
  std::fill_n(expected.begin(), 2 * 3 + 3 * 12 + 3 * 4, 1);
  EXPECT_EQ(sums, expected);
}

TEST_P(Phases, RestartInTheMiddleAndAtABoundary) {
  const int ranks = std::min(launch_ranks(), 3);
  const grid::Group group = first_ranks(ranks);
  if (!is_among_first(ranks)) return;
  deck::Config config = phases_deck(GetParam());
  const Index steps = config.train.steps;
  Training straight(config, group);
  straight.engine->initialise({});
  const auto expected = straight.run(0, steps);
  for (const Index stop : {1, 2, 3, 5, 6}) {
    const SharedFolder folder(group);
    std::vector<engine::StepResult> results;
    {
      config.zero.stage = stop % 2 == 0 ? 0 : 3;
      Training first(config, group);
      first.engine->initialise({});
      results = first.run(0, stop);
      save(first, group, folder.path(), stop);
    }
    config.zero.stage = stop % 2 == 0 ? 3 : 0;
    Training second(config, group);
    ASSERT_EQ(load(second, group, folder.path()), stop);
    for (const auto& result : second.run(stop, steps)) results.push_back(result);
    EXPECT_TRUE(same_bits(numbers_of(results), numbers_of(expected))) << "stopped after " << stop;
    EXPECT_EQ(owned_state(second), owned_state(straight)) << "stopped after " << stop;
  }
}

TEST_P(Phases, SendTheExpectedMeanOfTheirSteps) {
  const int ranks = std::min(launch_ranks(), 2);
  const grid::Group group = first_ranks(ranks);
  if (!is_among_first(ranks) || ranks < 2) return;
  for (const Index stage : {0, 2, 3}) {
    deck::Config config = phases_deck(GetParam());
    config.train.global_batch = 2;
    config.zero.stage = stage, config.grid.node = 1;
    Training training(config, group);
    training.engine->initialise({});
    training.run(0, 7);
    const std::vector<Index> steps{2, 3, 2};
    const auto rows = engine::counted(
        training.traffic, engine::expected_traffic(training.config, training.engine->blueprint(),
                                                   steps, training.grid.data().rank()));
    ASSERT_FALSE(rows.empty());
    for (const metrics::TrafficRow& row : rows) {
      EXPECT_EQ(row.elements_per_step, row.expected_elements_per_step) << row.purpose;
      EXPECT_EQ(row.bytes_per_step, row.expected_bytes_per_step) << row.purpose;
      EXPECT_GT(row.elements_per_step, 0) << row.purpose;
    }
  }
}

// The second computation of a step has hashes of as many micro-batches as its phase.
TEST_P(Phases, AreVerified) {
  const int ranks = std::min(launch_ranks(), 3);
  const grid::Group group = first_ranks(ranks);
  if (!is_among_first(ranks)) return;
  deck::Config config = phases_deck(GetParam());
  Training plain(config, group);
  config.run.verify_every = 1;
  Training verified(config, group);
  plain.engine->initialise({});
  verified.engine->initialise({});
  EXPECT_TRUE(same_bits(numbers_of(verified.run(0, 6)), numbers_of(plain.run(0, 6))));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Phases, testing::Values(Dtype::fp32, Dtype::bf16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
