// Promise 1 on several nodes: how ranks are placed on nodes changes which messages are sent, and no
// bit. Traffic and memory are the planned ones.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <optional>

#include "support/full_result.hpp"
#include "support/training.hpp"

namespace kzero::tests {
namespace {

std::string describe(const deck::Config& config, int ranks) {
  return fmt::format(
      "{} ranks, {} a node, stage {}, {} micro-batches{}", ranks, config.grid.node,
      config.zero.stage, config.train.global_batch,
      config.zero.parameters == deck::SharesParameters::node ? ", nodes share parameters" : "");
}

/// Runs three steps and a validation on the first ranks of the launch. Empty on the other ranks.
/// Collective over the launch.
std::optional<FullResult> placed_result(const deck::Config& config, int ranks) {
  const grid::Group group = first_ranks(ranks);
  if (!is_among_first(ranks)) return std::nullopt;
  Training training(config, group);
  FullResult result = full_result(training, group, 3);
  expect_planned_bytes(training, describe(config, ranks));
  if (config.train.global_batch % (ranks / config.grid.tensor) == 0)
    expect_planned_traffic(training, describe(config, ranks));
  return result;
}

/// Compares all placements of all ranks on nodes, in every stage, with one data-parallel rank.
void expect_same_on_all_nodes(deck::Config config, const std::vector<Index>& batches) {
  const auto tensor = static_cast<int>(config.grid.tensor);
  if (launch_ranks() % tensor != 0) return;
  for (const Index batch : batches) {
    config.train.global_batch = batch;
    config.grid.node = 0, config.zero.stage = 0;
    const auto expected = placed_result(config, tensor);
    Index stage = 0;
    for (int node = tensor; node <= launch_ranks(); node += tensor) {
      for (int repeat = 0; repeat < (has_few_cores() ? 2 : 4); ++repeat) {
        config.grid.node = node;
        config.zero.stage = stage++ % 4;
        config.zero.gradients = repeat % 2 == 0 ? deck::KeepsSums::nodes : deck::KeepsSums::owners;
        config.zero.bucket = repeat < 2 ? 1 << 20 : 3001;
        const auto check = [&] {
          expect_same(placed_result(config, launch_ranks()), expected,
                      describe(config, launch_ranks()));
        };
        check();
        if (config.zero.stage < 3 || launch_ranks() % node != 0) continue;
        config.zero.parameters = deck::SharesParameters::node;
        config.zero.gradients = deck::KeepsSums::nodes;
        check();
        config.zero.parameters = deck::SharesParameters::ranks;
      }
    }
  }
}

class Nodes : public testing::TestWithParam<Dtype> {};

TEST_P(Nodes, DoNotShow) {
  deck::Config config = small_deck(GetParam());
  config.model.layers = 2;
  expect_same_on_all_nodes(config, {8, 32, 11});
}

TEST_P(Nodes, DoNotShowInLlamaWithMoreBlocks) {
  deck::Config config = as_llama(small_deck(GetParam()), 1);
  config.model.layers = 1, config.train.sum_blocks = 16;
  expect_same_on_all_nodes(config, {16});
}

TEST_P(Nodes, DoNotShowBesideTensorParallelism) {
  deck::Config config = small_deck(GetParam());
  config.model.hidden = 16, config.model.heads = 4, config.model.layers = 1;
  config.grid.tensor = 2;
  expect_same_on_all_nodes(config, {8});
}

TEST(Nodes, DoNotShowWithMuonAndOverlap) {
  deck::Config config = small_deck(Dtype::bf16);
  config.optimizer.kind = deck::OptimizerKind::muon;
  config.model.layers = 1;
  config.zero.overlap = deck::Overlap::on;
  set_offload_if_needed(config);
  expect_same_on_all_nodes(config, {16});
}

// A copy of the parameters needs the same ranks of every node.
TEST(Nodes, OfDifferentSizesShareNoParameters) {
  const int ranks = launch_ranks();
  if (ranks < 3) GTEST_SKIP() << "two nodes of different sizes have three ranks";
  deck::Config config = small_deck();
  config.train.global_batch = ranks;
  config.zero.stage = 3, config.zero.parameters = deck::SharesParameters::node;
  config.grid.node = ranks - 1;
  try {
    placed_result(config, ranks);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("equally many data-parallel ranks"), std::string::npos)
        << error.what();
  }
}

// The number of blocks is part of the sum's definition.
TEST(Nodes, BlocksOfASumShow) {
  deck::Config config = small_deck();
  config.train.sum_blocks = 1;
  const auto chain = placed_result(config, 1);
  config.train.sum_blocks = 4;
  const auto tree = placed_result(config, 1);
  if (!chain || !tree) return;
  EXPECT_FALSE(same_bits(chain->state, tree->state));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Nodes, testing::Values(Dtype::fp32, Dtype::bf16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
