// Promise 1 for the number of data-parallel ranks: losses, norms, validation and state are bitwise
// equal on any number of ranks that have at least one micro-batch each. The same is true of a run
// that moves between them.
#include <gtest/gtest.h>

#include <optional>

#include "support/checkpoints.hpp"
#include "support/full_result.hpp"
#include "support/outcome.hpp"
#include "support/same_bits.hpp"

namespace kzero::tests {
namespace {

/// Tries all numbers of data-parallel ranks that the launch supports, each in a different stage.
void expect_same_on_all_numbers(deck::Config config, Index first_stage = 0) {
  const auto tensor = static_cast<int>(config.grid.tensor);
  const Index max = config.train.global_batch / config.train.micro_batch;
  const auto expected = planned_result_on(config, tensor, "another number of ranks");
  Index stage = first_stage;
  for (const int data : {2, 3, 4, 5, 6, 8, 16}) {
    if (data * tensor > launch_ranks() || data > max) continue;
    config.zero.stage = ++stage % 4;
    config.zero.bucket = stage % 2 == 0 ? 3001 : 1 << 20;
    expect_same(
        planned_result_on(config, data * tensor, "another number of ranks"), expected,
        std::to_string(data) + " data-parallel ranks, stage " + std::to_string(config.zero.stage));
  }
}

class RankCount : public testing::TestWithParam<Dtype> {};

TEST_P(RankCount, DoesNotShow) {
  deck::Config config = small_deck(GetParam());
  config.train.global_batch = 16;
  config.optimizer.clip = 0.5;  // below the first norms
  for (const Index stage : {0, 1, 2, 3}) {
    if (stage > 0 && has_few_cores()) break;
    expect_same_on_all_numbers(config, stage);
  }
}

TEST_P(RankCount, DoesNotShowInLlama) {
  deck::Config config = as_llama(small_deck(GetParam()), 1);
  config.train.global_batch = 16, config.model.layers = 1;
  expect_same_on_all_numbers(config);
}

TEST_P(RankCount, DoesNotShowWhereItDividesNothing) {
  deck::Config config = small_deck(GetParam());
  config.train.global_batch = 34, config.train.micro_batch = 2;  // 17 micro-batches
  config.model.layers = 1;
  config.zero.overlap = deck::Overlap::on;
  expect_same_on_all_numbers(config);
  config.train.global_batch = 7, config.train.micro_batch = 1;
  config.zero.overlap = deck::Overlap::off;
  config.zero.offload = deck::Offload::host;
  expect_same_on_all_numbers(config, 2);
}

TEST_P(RankCount, DoesNotShowBesideTensorParallelism) {
  deck::Config config = small_deck(GetParam());
  config.model.hidden = 16, config.model.heads = 4, config.model.layers = 2;
  config.grid.tensor = 2;
  config.recompute = {.mode = deck::RecomputeMode::full, .partition = true};
  if (launch_ranks() < 4) return;
  expect_same_on_all_numbers(config);
  expect_same_on_all_numbers(as_llama(config, 1));
}

TEST(RankCount, DoesNotShowInSkippedSteps) {
  deck::Config config = small_deck(Dtype::fp16);
  config.optimizer.loss_scale = 0x1p24;
  config.optimizer.loss_scale_window = 1;
  config.model.layers = 1;
  const auto alone = planned_result_on(config, 1, "another number of ranks");
  if (alone) {
    EXPECT_EQ(alone->numbers[4], 1.0) << "the first step overflows";
  }
  expect_same_on_all_numbers(config);
}

// Adding a step's gradients before they are reduced needs fewer messages and gives other bits.
TEST(RankCount, ShowsWithLocalAccumulation) {
  if (launch_ranks() < 2) return;
  deck::Config config = small_deck();
  config.zero.accumulate = deck::Accumulate::local;
  const auto one = planned_result_on(config, 1, "another number of ranks"),
             two = planned_result_on(config, 2, "another number of ranks");
  if (!one || !two) return;
  EXPECT_FALSE(same_bits(one->state, two->state));
}

/// Runs steps [begin, end) on the first ranks from the folder's checkpoint, and saves another.
std::optional<FullResult> leg(const deck::Config& config, int ranks,
                              const std::filesystem::path& folder, Index begin, Index end) {
  const grid::Group group = first_ranks(ranks);
  if (!is_among_first(ranks)) return std::nullopt;
  Training training(config, group);
  if (begin == 0) {
    training.engine->initialise({});
  } else {
    EXPECT_EQ(load(training, group, folder / ("step_0000000" + std::to_string(begin))), begin);
  }
  FullResult result{numbers_of(training.run(begin, end)),
                    full_state(training.engine->owned_shards(), group)};
  save(training, group, folder, end);
  return result;
}

TEST_P(RankCount, MayChangeFromJobToJob) {
  deck::Config config = small_deck(GetParam());
  const int max = std::min(launch_ranks(), 4);
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder straight(world), moved(world);
  const auto expected = leg(config, 1, straight.path(), 0, 5);
  std::optional<FullResult> last;
  const int ranks[] = {1, std::min(max, 4), std::min(max, 3), std::min(max, 2), 1};
  for (Index step = 0; step < 5; ++step) {
    config.zero.stage = (step + 1) % 4;
    config.zero.bucket = 509 * (step + 1);
    last = leg(config, ranks[step], moved.path(), step, step + 1);
    world.barrier();  // waits until the checkpoint exists
  }
  if (!last || !expected) return;
  const std::size_t numbers = expected->numbers.size() / 5;
  EXPECT_TRUE(same_bits(last->numbers,
                        std::vector(expected->numbers.end() - static_cast<std::ptrdiff_t>(numbers),
                                    expected->numbers.end())));
  EXPECT_TRUE(same_bits(last->state, expected->state));
}

INSTANTIATE_TEST_SUITE_P(Precisions, RankCount,
                         testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
