#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "engine/expected_traffic.hpp"
#include "engine/memory_report.hpp"
#include "engine/sums_place.hpp"
#include "support/training.hpp"
#include "tensor/view.hpp"

namespace kzero::tests {
namespace {

using comm::Operation;
using comm::Purpose;

TEST(Reports, CountedTrafficStandsBesideItsTheory) {
  comm::Traffic traffic;
  traffic.add({"data", Operation::all_gather, Purpose::gradients}, 99, 396,
              true);  // before any step
  for (Index step = 0; step < 2; ++step) {
    traffic.begin_step();
    traffic.add({"data", Operation::all_gather, Purpose::gradients}, 15, 60, step == 1);
    if (step == 1) traffic.add({"data", Operation::all_reduce, Purpose::parameters}, 4, 16, false);
    traffic.end_step();
  }
  const auto rows = engine::counted(traffic, {{"data", "reduce_scatter", "gradients", 0, 0, 9, 36},
                                              {"data", "all_gather", "gradients", 0, 0, 15, 60}});
  ASSERT_EQ(rows.size(), 3U);
  for (const metrics::TrafficRow& row : rows) {
    const Index elements = row.operation == "all_gather"   ? 15
                           : row.operation == "all_reduce" ? 4
                                                           : 0;
    const Index expected = row.operation == "all_gather"   ? 15
                           : row.operation == "all_reduce" ? 0
                                                           : 9;
    EXPECT_EQ(row.elements_per_step, elements) << row.operation;
    EXPECT_EQ(row.bytes_per_step, 4 * elements) << row.operation;
    EXPECT_EQ(row.bytes_between_nodes_per_step, row.operation == "all_gather" ? 30 : 0);
    EXPECT_EQ(row.expected_elements_per_step, expected)
        << row.operation << ": what was planned and not sent shows";
  }
}

TEST(Reports, TheoryOfOneRankIsSilence) {
  const deck::Config config = resolved(small_deck(), 1);
  EXPECT_TRUE(engine::expected_traffic(config, engine::Blueprint(config, 1)).empty());
}

// Two nodes of four ranks, two rounds. On hosts nothing is gathered, because a node's ranks share
// memory; otherwise each unit is gathered from the node's other ranks. Each updated shard and each
// node's sum goes to the other node once.
TEST(Reports, TrafficOfParametersThatNodesShare) {
  deck::Config config = small_deck(Dtype::bf16);
  config.zero.stage = 3, config.zero.parameters = deck::SharesParameters::node;
  config.zero.gradients = deck::KeepsSums::nodes;
  config.grid.node = 4, config.train.global_batch = 16;
  config = resolved(config, 8);
  const engine::Blueprint blueprint(config, 8);
  const Index owned = blueprint.layout.owned_total();
  for (const metrics::TrafficRow& row : engine::expected_traffic(config, blueprint)) {
    const bool gathers = row.operation == "all_gather";
    const Index within = gathers ? 2 * blueprint.training.gathers() / 4 * 3 : 2 * 6 * owned;
    EXPECT_EQ(blueprint.training.gathers() == 0, tensor::on_host);
    EXPECT_EQ(row.expected_elements_per_step, within + owned) << row.operation;
    EXPECT_EQ(row.expected_bytes_between_nodes_per_step, (gathers ? 2 : 4) * owned)
        << row.operation;
  }
}

TEST(Reports, TrafficOfSharedParametersOnOneNodeIsThatOfGradients) {
  if (!tensor::on_host) GTEST_SKIP() << "devices do not share memory";
  deck::Config config = small_deck(Dtype::bf16);
  config.zero.stage = 3, config.train.global_batch = 16;
  for (const bool is_for_gpus : {false, true}) {
    if (is_for_gpus) config.run.communicator = deck::CommunicatorKind::nccl;
    const deck::Config ready = resolved(config, 8);
    const auto rows = engine::expected_traffic(ready, engine::Blueprint(ready, 8));
    ASSERT_EQ(rows.size(), is_for_gpus ? 2U : 1U) << "GPUs gather";
    EXPECT_EQ(rows[0].purpose, "gradients");
  }
}

// Two nodes of four ranks, two rounds. On hosts a rank receives one shard from the other node, and
// its node's ranks read it where it arrived.
TEST(Reports, TrafficOfGatheredUnitsThatNodesShareLeavesTheNode) {
  deck::Config config = small_deck(Dtype::bf16);
  config.zero.stage = 3, config.grid.node = 4, config.train.global_batch = 16;
  config = resolved(config, 8);
  const engine::Blueprint blueprint(config, 8);
  const auto rows = engine::expected_traffic(config, blueprint);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].purpose, "parameters");
  const Index shards = 2 * blueprint.training.gathers() / 8;
  EXPECT_EQ(rows[1].expected_elements_per_step, (tensor::on_host ? 1 : 7) * shards);
  EXPECT_EQ(rows[1].expected_bytes_between_nodes_per_step, 2 * shards);
}

/// The copies that 8 ranks on two nodes of 4 send in a round. 4 ranks are on the other node.
std::vector<Index> copies(const zero::SumShape& shape, zero::KeepsSums keeps, Index round) {
  const engine::Copies sent = engine::sum_copies({shape, keeps}, round, 4);
  return {sent.within, sent.between, sent.between_fp32};
}

TEST(Reports, CountCopiesOfEachRouteOfSums) {
  using Copies = std::vector<Index>;
  using enum deck::KeepsSums;
  const zero::SumShape shape{.ranks = 8, .nodes = 2, .terms = 8, .blocks = 4};
  EXPECT_EQ(copies(shape, owners, 0), (Copies{6, 0, 1})) << "a node's sum, in fp32";
  zero::SumShape four = shape;
  four.terms = 32;
  EXPECT_EQ(copies(four, nodes, 0), (Copies{6, 0, 0})) << "nodes keep their sums";
  EXPECT_EQ(copies(four, nodes, 3), (Copies{6, 0, 1})) << "and send them in the last round";
  EXPECT_EQ(copies(four, owners, 3), (Copies{3, 4, 0}))
      << "a node computes less than a block in a round";
  zero::SumShape library = shape;
  library.by_library = true;
  EXPECT_EQ(copies(library, owners, 0), (Copies{6, 1, 0})) << "as a gather";
}

TEST(NodeNotes, NameTheSettingsThatSendLess) {
  const auto note = [](Index ranks, Index node, Index batch, Index stage,
                       deck::KeepsSums keeps = deck::KeepsSums::automatic) {
    deck::Config config = small_deck();
    config.zero.gradients = keeps;
    config.zero.stage = stage, config.grid.node = node, config.train.global_batch = batch;
    config = resolved(config, ranks);
    return fmt::format(
        "{}", fmt::join(engine::node_notes(config, engine::Blueprint(config, ranks)), "\n"));
  };
  EXPECT_EQ(note(8, 8, 8, 2), "") << "one node";
  EXPECT_EQ(note(8, 1, 8, 2), "") << "one gradient a node";
  EXPECT_EQ(note(8, 4, 8, 2), "");
  EXPECT_EQ(note(8, 4, 32, 1), "") << "stage 1 keeps sums in nodes";
  EXPECT_EQ(note(8, 4, 32, 2), "") << "nodes keep sums: they take little memory";
  const std::string owners = note(8, 4, 32, 2, deck::KeepsSums::owners);
  EXPECT_EQ(
      owners.find("nodes send each gradient 16 times a step; zero.gradients = \"node\" (which "
                  "takes "),
      0U)
      << owners;
  EXPECT_EQ(note(16, 2, 16, 0),
            "nodes send each gradient 2 times a step; train.sum_blocks = 8 (which changes bits) "
            "would send it once");
  const std::string dear = note(8, 1, 32, 2);  // a node's sums are as large as the model
  EXPECT_EQ(
      dear.find("nodes send each gradient 4 times a step; train.sum_blocks = 8 (which changes "
                "bits) and zero.gradients = \"node\" (which takes "),
      0U)
      << dear;
  EXPECT_EQ(note(6, 3, 7, 2), "") << "no setting helps";
  EXPECT_EQ(note(8, 8, 8, 3), "") << "one node";
  EXPECT_EQ(note(8, 4, 8, 3),
            "nodes send each parameter 1.7 times a step; zero.parameters = \"node\" (which takes "
            "memory) would send it once");
}

TEST(Reports, MemoryRowsComeFromEveryRank) {
  const grid::Group group = first_ranks(launch_ranks());
  memory::Bytes planned{}, peak{};
  for (std::size_t i = 0; i < memory::category_count; ++i) {
    planned[i] = static_cast<Index>(1000 * i);
    peak[i] = planned[i] + group.rank();
  }
  const auto rows = engine::memory_rows(group, planned, peak, 77 + group.rank());
  ASSERT_EQ(rows.size(), group.is_root() ? static_cast<std::size_t>(group.size()) : 0U);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    EXPECT_EQ(rows[r].rank, static_cast<Index>(r));
    EXPECT_GT(rows[r].resident_peak_bytes, 0);
    EXPECT_EQ(rows[r].resident_start_bytes, static_cast<Index>(77 + r));
    ASSERT_EQ(rows[r].categories.size(), memory::category_count);
    for (std::size_t i = 0; i < memory::category_count; ++i) {
      EXPECT_EQ(rows[r].categories[i].name, memory::category_names[i]);
      EXPECT_EQ(rows[r].categories[i].planned_bytes, static_cast<Index>(1000 * i));
      EXPECT_EQ(rows[r].categories[i].peak_bytes, static_cast<Index>(1000 * i + r));
    }
  }
}

}  // namespace
}  // namespace kzero::tests
