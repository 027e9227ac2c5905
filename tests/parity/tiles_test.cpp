// Promise 1 for tiles (train.tile_rows): what recompute.mode keeps of the feed-forward part changes
// no bit, although it keeps one tile or all. Bytes and traffic are as planned.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "parity/lora_decks.hpp"
#include "support/checkpoints.hpp"
#include "support/full_result.hpp"

namespace kzero::tests {
namespace {

using deck::RecomputeMode;

constexpr deck::Recompute modes[] = {{},
                                     {.mode = RecomputeMode::layernorm_gelu},
                                     {.mode = RecomputeMode::feed_forward},
                                     {.mode = RecomputeMode::full}};

std::optional<FullResult> result_on(const deck::Config& config, int ranks) {
  return counted_result_on(config, ranks,
                           std::string(name_of(config.recompute.mode)) + ", tiles of " +
                               std::to_string(config.train.tile_rows));
}

/// A tile of 4 rows divides the sequence; 5 and 6 do not.
deck::Config tile_deck(Dtype precision, Index rows) {
  deck::Config config = small_deck(precision);
  config.model.layers = 2, config.model.sequence = 16;
  config.model.heads = 4, config.model.hidden = 24, config.model.feed_forward = 53;
  config.train.tile_rows = rows;
  return config;
}

class Tiles : public testing::TestWithParam<Dtype> {};

TEST_P(Tiles, RecomputationDoesNotShow) {
  for (const Index rows : {4, 5}) {
    const deck::Config config = tile_deck(GetParam(), rows);
    for (deck::Config tried : {config, as_llama(config, 2)}) {
      const auto expected = result_on(tried, launch_ranks());
      Index stage = 0;
      for (const deck::Recompute& recompute : modes) {
        tried.recompute = recompute;
        tried.zero.stage = ++stage % 4;
        expect_same(result_on(tried, launch_ranks()), expected,
                    std::string(name_of(recompute.mode)) + ", tiles of " + std::to_string(rows));
      }
    }
  }
}

// Backward drops the gradient of all rows of a chunk, of which a tile is a part.
TEST_P(Tiles, RecomputationDoesNotShowInDropout) {
  for (deck::Config tried : {tile_deck(GetParam(), 2), as_llama(tile_deck(GetParam(), 2), 2)}) {
    tried.model.dropout = 0.2;
    const auto expected = result_on(tried, launch_ranks());
    for (const RecomputeMode mode : {RecomputeMode::feed_forward, RecomputeMode::full}) {
      tried.recompute.mode = mode;
      expect_same(result_on(tried, launch_ranks()), expected, std::string(name_of(mode)));
    }
  }
}

TEST_P(Tiles, DoNotShowAccumulationInTheModel) {
  deck::Config config = tile_deck(GetParam(), 5);
  config.zero.accumulate = deck::Accumulate::local;
  for (deck::Config tried : {config, with_lora(config)}) {
    const auto expected = result_on(tried, launch_ranks());
    tried.recompute.mode = RecomputeMode::full;
    expect_same(result_on(tried, launch_ranks()), expected, "local");
  }
}

TEST_P(Tiles, RecomputationDoesNotShowInTensorGroups) {
  if (launch_ranks() % 2 != 0) return;
  deck::Config config = tile_deck(GetParam(), 6);
  config.grid.tensor = 2;
  for (deck::Config tried : {config, as_llama(config, 2)}) {
    const auto expected = result_on(tried, launch_ranks());
    for (const deck::Recompute& recompute : modes) {
      tried.recompute = recompute;
      expect_same(result_on(tried, launch_ranks()), expected, std::string(name_of(recompute.mode)));
    }
  }
}

// The targets differ in the GEMM at which the first block's backward ends.
TEST_P(Tiles, RecomputationDoesNotShowInAdapters) {
  for (const Index tensor : {1, 2}) {
    if (launch_ranks() % tensor != 0) continue;
    deck::Config config = tile_deck(GetParam(), tensor == 1 ? 5 : 6);
    config.grid.tensor = tensor;
    const deck::Config llama = as_llama(config, 2);
    for (deck::Config tried : {with_lora(config), with_lora(config, {"c_fc"}), with_lora(llama),
                               with_lora(llama, {"o_proj"}), with_lora(llama, {"down_proj"})}) {
      const auto expected = result_on(tried, launch_ranks());
      for (const RecomputeMode mode : {RecomputeMode::feed_forward, RecomputeMode::full}) {
        tried.recompute.mode = mode;
        expect_same(result_on(tried, launch_ranks()), expected,
                    std::string(name_of(mode)) + ", tensor " + std::to_string(tensor));
      }
    }
  }
}

// In chunks, tiles begin anew in each.
TEST_P(Tiles, OfChunksDoNotShowSequenceRanks) {
  deck::Config config = as_llama(tile_deck(GetParam(), 3), 4);
  config.train.sequence_chunks = 4;
  for (deck::Config tried : {config, with_lora(config)}) {
    tried.recompute.mode = RecomputeMode::full;
    const auto expected = result_on(tried, 1);
    for (const Index ranks : {2, 4}) {
      if (ranks > launch_ranks()) continue;
      tried.grid.sequence = ranks;
      tried.recompute.mode = RecomputeMode::feed_forward;
      expect_same(result_on(tried, static_cast<int>(ranks)), expected, std::to_string(ranks));
    }
  }
}

// Tiles change the order in which rows add to the feed-forward layers' gradients, and nothing else.
TEST(Tiles, AgreeToRounding) {
  const deck::Config config = tile_deck(Dtype::fp32, 5);
  for (const double dropout : {0.0, 0.2}) {
    const deck::Config llama = as_llama(config, 2);
    for (deck::Config tried : {config, llama, with_lora(config), with_lora(llama)}) {
      tried.model.dropout = dropout;
      const auto tiles = result_on(tried, 1);
      tried.train.tile_rows = 0;
      const auto whole = result_on(tried, 1);
      if (!tiles || !whole) continue;
      for (std::size_t i = 0; i < whole->numbers.size(); ++i)
        EXPECT_NEAR(tiles->numbers[i], whole->numbers[i], 2e-5 * std::abs(whole->numbers[i])) << i;
    }
  }
}

// With zero.accumulate = "local", sums in fp32 of one micro-batch are rounded to those of the
// others. What an earlier micro-batch or another block left in their memory must not count.
TEST(Tiles, AndTheHeadAccumulateInTheModelToRounding) {
  constexpr double bound = 4 * 0x1p-9;  // bf16 rounds each of the four micro-batches' sums once
  deck::Config config = tile_deck(Dtype::bf16, 5);
  config.train.global_batch = 4 * config.train.micro_batch;
  for (deck::Config tried : {config, as_llama(config, 2), with_lora(as_llama(config, 2))}) {
    tried.zero.accumulate = deck::Accumulate::reduced;
    const auto reduced = result_on(tried, 1);
    tried.zero.accumulate = deck::Accumulate::local;
    const auto local = result_on(tried, 1);
    if (!local || !reduced) continue;
    for (std::size_t i = 0; i < local->numbers.size(); ++i)
      EXPECT_NEAR(local->numbers[i], reduced->numbers[i], bound * std::abs(reduced->numbers[i]))
          << i << ", " << name_of(tried.model.family);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Tiles, testing::Values(Dtype::fp32, Dtype::bf16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
