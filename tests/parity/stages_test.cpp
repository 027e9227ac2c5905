// Promise 1: stages 0 to 3 give the same bits for any bucket, prefetch depth and overlap, in every
// precision, with accumulation, clipping and skipped steps, and with any recomputation or offload.
#include <gtest/gtest.h>

#include "support/outcome.hpp"

namespace kzero::tests {
namespace {

std::string describe(const deck::Zero& zero) {
  return "stage " + std::to_string(zero.stage) + ", bucket " + std::to_string(zero.bucket) +
         ", prefetch " + std::to_string(zero.prefetch_units) +
         (zero.overlap == deck::Overlap::on ? ", overlap" : ", no overlap");
}

/// Bucket sizes that do not divide evenly or that exceed any unit. Prefetch depths from zero to
/// more than the number of units. Only two variants if there are few cores.
std::vector<deck::Zero> variants(Index stage) {
  if (has_few_cores()) {
    return {
        {.stage = stage, .bucket = 3001, .prefetch_units = 1, .overlap = deck::Overlap::on},
        {.stage = stage, .bucket = 1 << 20, .prefetch_units = 0, .overlap = deck::Overlap::off}};
  }
  std::vector<deck::Zero> all;
  for (const auto overlap : {deck::Overlap::off, deck::Overlap::on}) {
    for (const auto& [bucket, prefetch] :
         {std::pair<Index, Index>{1 << 20, 1}, {509, 0}, {8191, 2}, {3001, 40}}) {
      if (stage < 3 && prefetch == 40) continue;  // prefetch only affects stage 3
      all.push_back(
          {.stage = stage, .bucket = bucket, .prefetch_units = prefetch, .overlap = overlap});
    }
  }
  return all;
}

class Stages : public testing::TestWithParam<Dtype> {
 protected:
  void expect_all_stages_alike(deck::Config config) {
    config.zero.stage = 0;
    const Outcome expected = train_outcome(config, group);
    for (const Index stage : {0, 1, 2, 3}) {
      for (const deck::Zero& variant : variants(stage)) {
        config.zero = variant;
        // Ranks of one node share stage 3's parameters in memory, where nothing is prefetched.
        for (const Index node : {0, 1}) {
          if (node == 1 ? stage < 3 : stage == 3 && variant.prefetch_units != 1) continue;
          config.grid.node = node;
          expect_same(train_outcome(config, group), expected, describe(variant));
        }
        config.grid.node = 0;
      }
    }
  }

  void expect_recomputation_alike(deck::Config config);

  const grid::Group group = first_ranks(launch_ranks());
};

TEST_P(Stages, WithoutAccumulation) {
  deck::Config config = small_deck(GetParam());
  config.train.micro_batch = 0, config.train.global_batch = 2 * launch_ranks();
  config.optimizer.clip = 0.5;  // below the first norms
  expect_all_stages_alike(config);
}

TEST_P(Stages, WithReducedMicroBatches) {
  deck::Config config = small_deck(GetParam());
  config.train.global_batch = 3 * launch_ranks();
  config.model.tied_embeddings = false, config.model.layers = 1;
  config.optimizer.clip = 0.5;
  expect_all_stages_alike(config);
}

void Stages::expect_recomputation_alike(deck::Config config) {
  const Outcome expected = train_outcome(config, group);
  using deck::RecomputeMode;
  for (const deck::Recompute& recompute :
       {deck::Recompute{.mode = RecomputeMode::layernorm_gelu},
        deck::Recompute{.mode = RecomputeMode::full},
        deck::Recompute{.mode = RecomputeMode::full, .offload = deck::Offload::host}}) {
    config.recompute = recompute;
    for (const Index stage : {0, 1, 2, 3}) {
      if (stage < 3 && has_few_cores()) continue;
      config.zero = variants(stage).front();
      expect_same(train_outcome(config, group), expected,
                  std::string(name_of(recompute.mode)) +
                      (recompute.offload == deck::Offload::host ? ", host, " : ", ") +
                      describe(config.zero));
    }
  }
}

TEST_P(Stages, OfLlama) {
  deck::Config config = as_llama(small_deck(GetParam()), 1);
  config.train.global_batch = 3 * launch_ranks();
  config.model.layers = 1;
  config.optimizer.clip = 0.5;
  expect_all_stages_alike(config);
  config.model.layers = 2, config.model.tied_embeddings = false;
  expect_recomputation_alike(config);
}

TEST_P(Stages, WithRecomputation) {
  deck::Config config = small_deck(GetParam());
  config.train.global_batch = 2 * launch_ranks();
  expect_recomputation_alike(config);
}

TEST_P(Stages, LocalAccumulationGivesStages0And1TheSameBits) {
  deck::Config config = small_deck(GetParam());
  config.train.global_batch = 3 * launch_ranks();
  config.zero.accumulate = deck::Accumulate::local;
  const Outcome expected = train_outcome(config, group);
  config.zero.stage = 1;
  expect_same(train_outcome(config, group), expected, "stage 1");
  config.zero.bucket = 509, config.zero.overlap = deck::Overlap::off;
  expect_same(train_outcome(config, group), expected, "stage 1, small bucket");
}

// In fp16 with an overflowing scale, skipped steps leave the state unchanged in every stage.
TEST(SkippedSteps, AreSkippedInEveryStage) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = small_deck(Dtype::fp16);
  config.train.micro_batch = 0, config.train.global_batch = 2 * launch_ranks();
  config.optimizer.loss_scale = 0x1p24;
  config.optimizer.loss_scale_window = 1;
  const Outcome expected = train_outcome(config, group);
  EXPECT_EQ(expected.numbers[4], 1.0) << "the first step overflows";
  for (const Index stage : {1, 2, 3}) {
    config.zero.stage = stage;
    expect_same(train_outcome(config, group), expected, "stage " + std::to_string(stage));
  }
}

// The small units have fewer elements than there are ranks, and some shards are only padding.
TEST_P(Stages, OfAModelWithFewerElementsThanRanks) {
  deck::Config config = small_deck(GetParam());
  deck::Model& model = config.model;
  model.layers = model.hidden = model.heads = model.feed_forward = 1, model.sequence = 2;
  config.train.micro_batch = 0, config.train.global_batch = 2 * launch_ranks();
  expect_all_stages_alike(config);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Stages, testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
