// Promise 1 for ranks that share sequences (grid.sequence): losses, norms, validation and state are
// bitwise equal for any number of them that divides train.sequence_chunks, in any stage. Bytes and
// traffic are as planned.
#include <gtest/gtest.h>

#include <optional>

#include "parity/lora_decks.hpp"
#include "support/checkpoints.hpp"
#include "support/document_file.hpp"
#include "support/full_result.hpp"
#include "support/outcome.hpp"

namespace kzero::tests {
namespace {

constexpr Index shared_tokens = 16;  // of a sequence, two of each chunk

deck::Config sequence_deck(Dtype precision) {
  deck::Config config = small_deck(precision);
  config.model.layers = 2;
  config.model.heads = 8, config.model.hidden = 24, config.model.feed_forward = 53;
  config.model.sequence = shared_tokens;
  config.train.sequence_chunks = 8;
  return config;
}

/// The deck with packed documents that have weights. Collective over the launch.
deck::Config in_documents(deck::Config config, const SharedFolder& files,
                          const grid::Group& world) {
  std::vector<Index> lengths;
  for (Index i = 0; i < 100; ++i) lengths.push_back(1 + (i * 29 + i * i) % shared_tokens);
  std::vector<float> weights;
  for (Index i = 0; i < 100; ++i) weights.push_back(0.5F * static_cast<float>(i % 5) - 0.25F);
  config.data.files = {DocumentNumbers(numbered_documents(lengths, 101), weights)
                           .write(files.path() / "training.docs")};
  config.data.format = deck::DataFormat::documents;
  world.barrier();
  return config;
}

/// Trains on `ranks` ranks, and `sequence` of them share each sequence. Returns nothing on other
/// ranks. Collective over the launch.
std::optional<FullResult> result_on(deck::Config config, int ranks, Index sequence) {
  config.grid.sequence = sequence;
  return counted_result_on(config, ranks,
                           std::to_string(sequence) + " sequence ranks of " +
                               std::to_string(ranks) + ", stage " +
                               std::to_string(config.zero.stage));
}

/// Tries all numbers of sequence ranks on all ranks of the launch, each in a different stage.
void expect_same_for_all_numbers(deck::Config config, const std::string& what) {
  const auto tensor = static_cast<int>(config.grid.tensor);
  config.zero.stage = 0;
  const auto expected = result_on(config, tensor, 1);
  Index stage = 0;
  for (const int data : {2, 4, 8}) {
    if (data * tensor != launch_ranks()) continue;  // smaller launches try smaller numbers
    for (Index sequence = 1; sequence <= data; sequence *= 2) {
      config.zero.stage = ++stage % 4;
      config.zero.bucket = stage % 2 == 0 ? 3001 : 1 << 20;
      expect_same(result_on(config, data * tensor, sequence), expected,
                  what + ", " + std::to_string(sequence) + " of " + std::to_string(data) +
                      ", stage " + std::to_string(config.zero.stage));
    }
  }
}

class Sequence : public testing::TestWithParam<Dtype> {};

TEST_P(Sequence, RanksDoNotShow) {
  const deck::Config config = sequence_deck(GetParam());
  expect_same_for_all_numbers(config, "gpt2");
  expect_same_for_all_numbers(as_llama(config, 8), "llama");
  deck::Config plain = as_llama(config, 8);
  plain.model.qk_norm = false, plain.model.tied_embeddings = false;
  expect_same_for_all_numbers(plain, "llama without head norms");
  plain.model.window = 5;
  expect_same_for_all_numbers(plain, "a window");
}

TEST_P(Sequence, RanksDoNotShowInStagesAndRecomputation) {
  const auto ranks = std::min(launch_ranks(), 8);
  deck::Config config = sequence_deck(GetParam());
  if (config.train.sequence_chunks % ranks != 0) return;
  Index first = 0;  // of the two stages that meet a mode; the other family has the other two
  for (deck::Config tried : {config, as_llama(config, 8)}) {
    const auto expected = result_on(tried, 1, 1);
    using deck::RecomputeMode;
    for (const auto& recompute :
         {deck::Recompute{}, deck::Recompute{.mode = RecomputeMode::layernorm_gelu},
          deck::Recompute{.mode = RecomputeMode::feed_forward},
          deck::Recompute{.mode = RecomputeMode::full, .offload = deck::Offload::host}}) {
      tried.recompute = recompute;
      for (const Index stage : {first % 4, (first + 1) % 4}) {
        tried.zero.stage = stage;
        expect_same(result_on(tried, ranks, ranks), expected,
                    std::string(name_of(recompute.mode)) + ", stage " + std::to_string(stage));
      }
      ++first;
    }
    first += 2;
  }
}

TEST_P(Sequence, RanksDoNotShowBesideTensorParallelism) {
  deck::Config config = sequence_deck(GetParam());
  config.grid.tensor = 2;
  if (launch_ranks() < 2) return;
  expect_same_for_all_numbers(as_llama(config, 8), "tensor 2");
}

TEST_P(Sequence, RanksDoNotShowInDocuments) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder files(world);
  const deck::Config config = in_documents(sequence_deck(GetParam()), files, world);
  expect_same_for_all_numbers(config, "gpt2");
  expect_same_for_all_numbers(as_llama(config, 8), "llama");
}

TEST_P(Sequence, RanksDoNotShowInDropoutAndAdapters) {
  deck::Config config = sequence_deck(GetParam());
  config.model.dropout = 0.2, config.model.attention_dropout = 0.1;
  expect_same_for_all_numbers(config, "dropout");
  expect_same_for_all_numbers(with_lora(as_llama(config, 8)), "adapters");
  expect_same_for_all_numbers(with_lora(as_llama(config, 8), {"down_proj"}), "last adapters");
}

// With more ranks than KV heads, ranks have copies of a head. Their gradients are added in another
// order than those of one rank's query heads.
TEST_P(Sequence, CopiesOfHeadsDoNotShowStages) {
  deck::Config config = as_llama(sequence_deck(GetParam()), 2);
  const auto ranks = std::min(launch_ranks(), 8);
  if (ranks < 4 || ranks % 4 != 0) return;
  const auto one = result_on(config, 1, 1), two = result_on(config, ranks, 2);
  expect_same(two, one, "2 ranks, 2 heads");
  const auto expected = result_on(config, ranks, ranks);
  for (const Index stage : {1, 2, 3}) {
    config.zero.stage = stage;
    expect_same(result_on(config, ranks, ranks), expected,
                "copies, stage " + std::to_string(stage));
  }
  if (!one || !expected) return;
  const double tolerance = GetParam() == Dtype::fp32 ? 2e-5 : 2e-2;
  for (std::size_t i = 0; i < one->numbers.size(); ++i)
    EXPECT_NEAR(expected->numbers[i], one->numbers[i], tolerance * std::abs(one->numbers[i])) << i;
}

TEST_P(Sequence, InThreePartsDoNotShow) {
  if (launch_ranks() != 3) return;
  deck::Config config = sequence_deck(GetParam());
  config.model.heads = 6, config.model.sequence = 12, config.train.sequence_chunks = 6;
  const auto expected = result_on(config, 1, 1);
  for (const Index stage : {0, 2, 3}) {
    config.zero.stage = stage;
    expect_same(result_on(config, 3, 3), expected, "stage " + std::to_string(stage));
  }
}

// On nodes, a sequence group is on one node or on several.
TEST_P(Sequence, RanksDoNotShowOnNodes) {
  if (launch_ranks() < 4) return;
  deck::Config config = sequence_deck(GetParam());
  const auto expected = result_on(config, 1, 1);
  const auto ranks = std::min(launch_ranks(), 8);
  for (const Index node : {1, 2}) {
    for (const Index sequence : {2, 4}) {
      config.grid.node = node;
      config.zero.stage = (node + sequence) % 4;
      expect_same(result_on(config, ranks, sequence), expected,
                  std::to_string(sequence) + " on nodes of " + std::to_string(node));
    }
  }
}

// With one chunk a rank, nodes may add the gradients of all rounds before they send them. A node
// with a part of a sequence group must not.
TEST_P(Sequence, RanksDoNotShowOnNodesThatKeepSums) {
  if (launch_ranks() < 4) return;
  deck::Config config = sequence_deck(GetParam());
  const auto ranks = std::min(launch_ranks(), 8);
  for (const Index sequence : {2, 4}) {
    config.train.sequence_chunks = sequence;
    config.grid.node = 0, config.zero.stage = 0;
    const auto expected = result_on(config, 1, 1);
    for (const Index node : {1, 2}) {
      config.grid.node = node;
      for (const Index stage : {0, 1}) {
        config.zero.stage = stage;
        expect_same(result_on(config, ranks, sequence), expected,
                    std::to_string(sequence) + " on nodes of " + std::to_string(node) + ", stage " +
                        std::to_string(stage));
      }
    }
  }
}

// Chunks change the order in which a sequence's gradients are added, and nothing else.
void expect_chunks_to_agree(deck::Config config, const std::string& what) {
  const auto chunks = result_on(config, 1, 1);
  config.train.sequence_chunks = 1;
  const auto whole = result_on(config, 1, 1);
  if (!chunks || !whole) return;
  EXPECT_FALSE(same_bits(chunks->numbers, whole->numbers)) << what;
  for (std::size_t i = 0; i < whole->numbers.size(); ++i) {
    EXPECT_NEAR(chunks->numbers[i], whole->numbers[i], 2e-5 * std::abs(whole->numbers[i]))
        << what << ", number " << i;
  }
}

TEST(Sequence, ChunksAgreeToRounding) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder files(world);
  const deck::Config config = sequence_deck(Dtype::fp32);
  for (const deck::Config& tried : {config, as_llama(config, 8)}) {
    const std::string family(name_of(tried.model.family));
    expect_chunks_to_agree(tried, family);
    expect_chunks_to_agree(in_documents(tried, files, world), family + ", documents");
    deck::Config dropping = tried;
    dropping.model.dropout = 0.2, dropping.model.attention_dropout = 0.1;
    expect_chunks_to_agree(dropping, family + ", dropout");
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Sequence, testing::Values(Dtype::fp32, Dtype::bf16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
