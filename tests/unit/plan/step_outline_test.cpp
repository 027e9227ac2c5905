// Outlines of steps: their bytes are those of the traffic table, their messages are counted by
// hand.
#include "plan/step_outline.hpp"

#include <gtest/gtest.h>

#include "comm/placement.hpp"
#include "deck/rules.hpp"
#include "engine/expected_traffic.hpp"
#include "plan/step_time.hpp"

namespace kzero::plan {
namespace {

struct Shape {
  Index ranks, node;
};

deck::Config placed(deck::Config config, const Shape& shape) {
  deck::resolve(config, {.ranks = shape.ranks, .purpose = deck::Purpose::plan});
  config.placement =
      comm::placement_on(comm::filled_nodes(shape.ranks, shape.node), config, shape.ranks);
  return config;
}

deck::Config small(Index stage, Index batch) {
  deck::Config config;
  config.model.hidden = 60, config.model.heads = 4, config.model.vocab = 301;
  config.model.layers = 3;
  config.train.precision = Dtype::bf16;
  config.train.global_batch = batch, config.train.micro_batch = 1;
  config.zero.stage = stage, config.zero.bucket = 3001;
  config.run.communicator = deck::CommunicatorKind::mpi;
  return config;
}

/// The decks whose traffic is compared: all stages, one and several rounds, all routes of sums.
std::vector<deck::Config> decks(const Shape& shape) {
  const Index ranks = shape.ranks;
  std::vector<deck::Config> all;
  if (ranks % shape.node == 0) {
    all.push_back(small(3, 8 * ranks));
    all.back().zero.parameters = deck::SharesParameters::node;
  }
  for (const Index stage : {0, 1, 2, 3}) {
    all.push_back(small(stage, ranks));
    all.push_back(small(stage, 8 * ranks));
    all.back().zero.gradients = deck::KeepsSums::nodes;
    all.push_back(small(stage, 8 * ranks));
    all.back().zero.gradients = deck::KeepsSums::owners;
    all.back().zero.bucket = 1 << 20;
    if (stage < 2) {
      all.push_back(small(stage, 8 * ranks));
      all.back().zero.accumulate = deck::Accumulate::local;
    }
  }
  all.push_back(small(2, ranks));
  all.back().zero.reduction = deck::ReductionOrder::library;
  all.back().run.communicator = deck::CommunicatorKind::nccl;
  all.push_back(small(2, ranks));
  all.back().run.communicator = deck::CommunicatorKind::nccl;
  all.push_back(small(2, ranks));
  all.back().optimizer.kind = deck::OptimizerKind::muon;
  if (ranks % 2 == 0) {
    all.push_back(small(2, ranks));
    all.back().grid.tensor = 2;
  }
  return all;
}

/// Nodes that can send as much as all their ranks.
Network network_of(double within, double between) {
  return {.within_node = within,
          .rank_between = between,
          .node_between = 1e12,
          .within_latency = 0,
          .between_latency = 0};
}

constexpr Shape shapes[] = {{8, 8}, {8, 4}, {8, 2}, {4, 1}, {6, 4}, {7, 3}};

std::string describe(const Shape& shape, const deck::Config& config) {
  return std::to_string(shape.ranks) + " ranks, " + std::to_string(shape.node) + " a node, stage " +
         std::to_string(config.zero.stage) + ", " + std::to_string(config.train.global_batch) +
         " micro-batches";
}

TEST(StepOutline, OfOneRateTakesTheBytesOfTheTableOverIt) {
  constexpr double rate = 1e6;
  for (const Shape& shape : shapes) {
    for (const deck::Config& deck : decks(shape)) {
      const Entry entry = plan(placed(deck, shape), 1);
      const auto sent = static_cast<double>(entry.sent_bytes());
      for (const Network& network : {uniform_network(rate), network_of(rate, rate)}) {
        if (entry.outlines[0].has_rings && network.rank_sends > rate) continue;
        EXPECT_NEAR(message_seconds(entry.outlines[0], network), sent / rate, 1e-9 * sent / rate)
            << describe(shape, deck);
      }
    }
  }
}

// At two rates, over MPI. Tensor groups and irregular nodes, whose ranks differ, are left out.
TEST(StepOutline, OfTwoRatesTakesTheBytesWithinAndBetweenNodes) {
  for (const Shape& shape : shapes) {
    for (const deck::Config& deck : decks(shape)) {
      const Entry entry = plan(placed(deck, shape), 1);
      if (entry.outlines[0].has_rings || entry.tensor_ranks > 1) continue;
      double within = 0, between = 0;
      for (const metrics::TrafficRow& row : entry.traffic) {
        between += static_cast<double>(row.bytes_between_nodes_per_step);
        within += static_cast<double>(row.bytes_per_step - row.bytes_between_nodes_per_step);
      }
      const double seconds = within / 4e6 + between / 1e6;
      EXPECT_NEAR(message_seconds(entry.outlines[0], network_of(4e6, 1e6)), seconds, 1e-9 * seconds)
          << describe(shape, deck);
    }
  }
}

// Nodes of 4 and 2 ranks: a rank of the second one sends 4 of 5 shards to the other node.
TEST(StepOutline, OfUnequalNodesIsMadeForBothKinds) {
  const auto all = plan(placed(small(2, 6), {6, 4}), 1).outlines;
  ASSERT_EQ(all.size(), 2U);
  EXPECT_DOUBLE_EQ(all[0].gathers[1].between / all[0].gathers[1].within, 2.0 / 3);
  EXPECT_DOUBLE_EQ(all[1].gathers[1].between / all[1].gathers[1].within, 4.0 / 1);
  EXPECT_EQ(all[0].sharing, 4);
  EXPECT_EQ(all[1].sharing, 2);
  EXPECT_EQ(plan(placed(small(2, 8), {8, 4}), 1).outlines.size(), 1U);
}

/// A deck whose blocks have 12 * 512^2 parameters and more, in fp32.
deck::Config large(Index stage, Index ranks) {
  deck::Config config = small(stage, ranks);
  config.model.hidden = 512, config.train.precision = Dtype::fp32;
  config.zero.bucket = 8 << 20;
  return config;
}

StepOutline outline_of(const deck::Config& config, const Shape& shape) {
  return plan(placed(config, shape), 1).outlines[0];
}

// A block has 3,152,384 parameters: shards of 394,048 on 8 ranks, 1.5 MiB. A shard takes 2 messages
// within a node, and 25 between nodes, whose latencies overlap in pairs.
TEST(StepOutline, CountsTheMessagesOfMpi) {
  const StepOutline two_by_four = outline_of(large(2, 8), {8, 4});
  const Collective& gather = two_by_four.gathers[1];
  EXPECT_EQ(gather.within, 6 * 394048.0 * 4);
  EXPECT_EQ(gather.between, 394048.0 * 4);
  EXPECT_EQ(gather.within_messages, 6 * 2);
  EXPECT_EQ(gather.between_messages, 13);
  EXPECT_EQ(gather.pattern, Pattern::swaps);
  const StepOutline one_node = outline_of(large(2, 8), {8, 8});
  EXPECT_EQ(one_node.gathers[1].within_messages, 7 * 2);
  EXPECT_EQ(one_node.gathers[1].between_messages, 0);
  // 8 MiB hold a shard of each rank's gradient in fp32 for 262,144 elements at a time: 1 MiB a
  // rank.
  EXPECT_EQ(one_node.last_sums[1].slices, 2);
  EXPECT_EQ(one_node.last_sums[1].exchange.within_messages, 7);
  EXPECT_EQ(one_node.slots, 1) << "nothing overlaps on one node";
  // On two nodes a slot also has 2 sums of each node, and there are two slots: 87,381 elements.
  EXPECT_EQ(two_by_four.slots, 2);
  EXPECT_EQ(two_by_four.last_sums[1].slices, 5);
  EXPECT_EQ(two_by_four.last_sums[1].collect.within_messages, 6);
  EXPECT_EQ(two_by_four.last_sums[1].exchange.between_messages, 14.0 / 5)
      << "3 pairs a slice of 341 KiB, 2 of the last one of 174 KiB";
  EXPECT_DOUBLE_EQ(5 * two_by_four.last_sums[1].exchange.between, 394048.0 * 4);
}

TEST(StepOutline, CountsTheHopsOfNcclsRings) {
  deck::Config config = large(2, 8);
  config.run.communicator = deck::CommunicatorKind::nccl;
  const StepOutline nodes = outline_of(config, {8, 4});
  EXPECT_EQ(nodes.gathers[1].pattern, Pattern::ring);
  EXPECT_EQ(nodes.gathers[1].between_messages, 2);
  EXPECT_EQ(nodes.gathers[1].within_messages, 5);
  EXPECT_EQ(nodes.last_sums[1].exchange.pattern, Pattern::exchange);
  EXPECT_EQ(nodes.last_sums[1].exchange.between_messages, 1) << "all peers at once";
  EXPECT_EQ(nodes.last_sums[1].collect.within_messages, 2) << "once for each node";
  EXPECT_EQ(outline_of(config, {7, 3}).gathers[1].between_messages, 3) << "irregular nodes";
  const StepOutline node = outline_of(config, {8, 8});
  EXPECT_EQ(node.gathers[1].between_messages, 0);
  EXPECT_EQ(node.gathers[1].within_messages, 7);
}

TEST(StepOutline, OverlapsWhatTheRunOverlaps) {
  const auto flags = [](const StepOutline& o) {
    return std::vector<bool>{o.in_flight, o.reductions_overlap, o.device_sums};
  };
  EXPECT_EQ(flags(outline_of(small(2, 8), {8, 8})), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(flags(outline_of(small(2, 8), {8, 4})), (std::vector<bool>{true, true, false}));
  deck::Config off = small(2, 8);
  off.zero.overlap = deck::Overlap::off;
  EXPECT_EQ(flags(outline_of(off, {8, 4})), (std::vector<bool>{false, false, false}));
  off.run.communicator = deck::CommunicatorKind::nccl;
  EXPECT_EQ(flags(outline_of(off, {8, 4})), (std::vector<bool>{true, false, true}));
  off.zero.overlap = deck::Overlap::automatic;
  EXPECT_EQ(flags(outline_of(off, {8, 8})), (std::vector<bool>{true, true, true}));
}

TEST(StepOutline, SharesTheWorkOfAMicroBatch) {
  deck::Config config = small(3, 8);
  config.recompute.mode = deck::RecomputeMode::full;
  const StepOutline o = outline_of(config, {8, 4});
  double work = 0, recomputed = 0;
  for (const OutlinedOperation& operation : o.operations) {
    work += operation.work;
    recomputed += operation.recomputed;
  }
  EXPECT_NEAR(work, 1, 1e-12);
  EXPECT_NEAR(recomputed, 1, 1e-12);
  EXPECT_EQ(o.operations.front().work, 0) << "embeddings are looked up";
  EXPECT_DOUBLE_EQ(o.operations[5].work, 2 * o.operations[1].work) << "backward and forward";
  EXPECT_EQ(o.operations[5].recomputed, 0) << "the last block";
  EXPECT_DOUBLE_EQ(o.operations[6].recomputed, 0.5);
}

}  // namespace
}  // namespace kzero::plan
