// Runs on a blend of sources, and evaluations of any number of micro-batches, give the same bits on
// any number of data-parallel ranks and after a restart.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "parity/shifted_source.hpp"
#include "support/checkpoints.hpp"
#include "support/full_state.hpp"
#include "support/same_bits.hpp"

namespace kzero::tests {
namespace {

/// Writes raw 16-bit tokens below `vocab`.
std::string write_tokens(const std::filesystem::path& file, Index count, Index vocab,
                         Index factor) {
  std::ofstream out(file, std::ios::binary);
  for (Index i = 0; i < count; ++i) {
    const auto token = static_cast<std::uint16_t>(i * i % 97 * factor % vocab);
    out.write(reinterpret_cast<const char*>(&token), sizeof token);
  }
  return file;
}

/// Three sources. A run of five steps reads the smallest more than once.
deck::Config blended_deck(const std::filesystem::path& folder) {
  deck::Config config = small_deck();
  config.model.layers = 1;
  config.data.files.clear();
  config.data.format = deck::DataFormat::raw;
  const auto source = [&](const char* name, Index tokens, Index factor, double weight) {
    config.data.blend.push_back(
        {name, {write_tokens(folder / name, tokens, config.model.vocab, factor)}, weight});
  };
  source("large", 3000, 3, 0.5);
  source("middle", 700, 5, 0.3);
  source("small", 40, 7, 0.2);  // 3 windows
  return config;
}

struct BlendRun {
  std::vector<double> numbers;
  FullState state;
};

/// Runs steps [begin, end) on the first ranks of the launch and saves a checkpoint at the end.
/// Starts from the checkpoint at `begin` unless that is 0. Evaluates 1, 5 and 11 micro-batches.
/// Returns nothing on the other ranks.
std::optional<BlendRun> blend_run_on(const deck::Config& config, int ranks,
                                     const std::filesystem::path& folder, Index begin, Index end) {
  const grid::Group group = first_ranks(ranks);
  if (!is_among_first(ranks)) return std::nullopt;
  Training training(config, group);
  if (begin == 0) {
    training.engine->initialise({});
  } else {
    EXPECT_EQ(load(training, group, folder / ("step_0000000" + std::to_string(begin))), begin);
  }
  BlendRun result{numbers_of(training.run(begin, end)), {}};
  for (const Index micro_batches : {1, 5, 11})
    result.numbers.push_back(training.engine->evaluate(micro_batches, *training.dataset.training));
  result.state = full_state(training.engine->owned_shards(), group);
  save(training, group, folder, end);
  expect_planned_bytes(training, "of a blend");
  return result;
}

void expect_same_run(const std::optional<BlendRun>& found, const std::optional<BlendRun>& expected,
                     const std::string& what) {
  if (!found || !expected) return;  // the root is always among the first ranks
  EXPECT_TRUE(same_bits(found->numbers, expected->numbers)) << what;
  EXPECT_TRUE(same_bits(found->state, expected->state)) << "state, " << what;
}

TEST(Blend, NumberOfRanksAndRestartsDoNotShow) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder files(world), straight(world);
  deck::Config config = blended_deck(files.path());
  world.barrier();  // every rank writes the same tokens; waits until they are written
  const auto expected = blend_run_on(config, 1, straight.path(), 0, 5);
  for (int ranks = 2; ranks <= std::min(4, launch_ranks()); ++ranks) {
    config.zero.stage = ranks - 1;
    const SharedFolder folder(world);
    expect_same_run(blend_run_on(config, ranks, folder.path(), 0, 5), expected,
                    std::to_string(ranks) + " ranks");
  }
  const SharedFolder moved(world);
  blend_run_on(config, std::min(2, launch_ranks()), moved.path(), 0, 3);
  world.barrier();  // waits until the checkpoint exists
  auto resumed = blend_run_on(config, std::min(3, launch_ranks()), moved.path(), 3, 5);
  if (!resumed || !expected) return;
  EXPECT_TRUE(same_bits(resumed->state, expected->state)) << "after a restart";
  const std::vector<double> last(expected->numbers.end() - std::ssize(resumed->numbers),
                                 expected->numbers.end());
  EXPECT_TRUE(same_bits(resumed->numbers, last)) << "after a restart";
}

// The mean of several micro-batches is the mean of their means. 70 are more losses than one rank
// keeps before it reads them.
TEST(Blend, AnEvaluationIsTheMeanOfItsMicroBatches) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder files(world);
  const deck::Config config = blended_deck(files.path());
  world.barrier();
  Training training(config, world);
  training.engine->initialise({});
  const data::BatchSource& samples = *training.dataset.training;
  double sum = 0;
  for (Index m = 0; m < 70; ++m) {
    sum += training.engine->evaluate(1, ShiftedSource(samples, m * config.train.micro_batch));
    if (m + 1 == 3 || m + 1 == 70) {
      const double mean = sum / static_cast<double>(m + 1);
      EXPECT_NEAR(training.engine->evaluate(m + 1, samples), mean, 1e-12 * sum) << m + 1;
    }
  }
  EXPECT_EQ(
      training.engine->validate(1, samples),
      training.engine->evaluate(config.train.global_batch / config.train.micro_batch, samples));
}

}  // namespace
}  // namespace kzero::tests
