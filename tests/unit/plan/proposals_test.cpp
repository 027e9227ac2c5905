// Proposals fit, give their entry when they are planned again, and come in the order of their time.
#include "plan/proposals.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "comm/placement.hpp"
#include "deck/rules.hpp"
#include "plan/step_time.hpp"
#include "tensor/gemm.hpp"

namespace kzero::plan {
namespace {

constexpr Index launch_ranks = 4;

deck::Config deck(Index nodes, Index tensor) {
  deck::Config config;
  config.model.hidden = 60, config.model.heads = 4, config.model.layers = 5;
  config.grid.tensor = tensor;
  config.train.global_batch = 48, config.train.micro_batch = 4;
  deck::resolve(config, {.ranks = launch_ranks});
  config.placement = comm::placement_on(comm::filled_nodes(launch_ranks, launch_ranks / nodes),
                                        config, launch_ranks);
  return config;
}

void add_estimate(Entry& entry) {
  constexpr Rates rates{.operations = 1e9, .memory_bytes = 1e9};
  entry.estimate =
      estimate(entry, rates,
               {.node_ranks = 2, .within_node = 1e8, .rank_between = 1e7, .node_between = 1e7});
}

std::vector<Proposal> proposed(const deck::Config& config, Index bytes) {
  std::vector<Proposal> found =
      proposals(config, launch_ranks, 1, {.device = bytes, .host = 0}, add_estimate);
  sort_by_time(found);
  return found;
}

/// The deck with a proposal's settings.
deck::Config with(deck::Config config, const Proposal& proposal) {
  config.zero.gradients = deck::KeepsSums::automatic;
  for (const auto& [key, value] : proposal.settings) {
    if (key == "zero.stage") config.zero.stage = std::get<Index>(value);
    if (key == "train.micro_batch") config.train.micro_batch = std::get<Index>(value);
    if (key == "recompute.partition") config.recompute.partition = std::get<bool>(value);
    if (key == "zero.gradients")
      config.zero.gradients =
          std::get<std::string>(value) == "node" ? deck::KeepsSums::nodes : deck::KeepsSums::owners;
    if (key == "zero.parameters") config.zero.parameters = deck::SharesParameters::node;
    if (key == "zero.offload") config.zero.offload = deck::Offload::host;
    if (key == "recompute.offload") config.recompute.offload = deck::Offload::host;
    if (key != "recompute.mode") continue;
    config.recompute.mode = proposal.entry.recompute.mode;
    EXPECT_EQ(std::get<std::string>(value), name_of(config.recompute.mode));
  }
  deck::resolve(config, {.ranks = launch_ranks});
  return config;
}

TEST(Proposals, AreReproducedByTheirSettings) {
  for (const Index tensor : {1, 2}) {
    const deck::Config config = deck(2, tensor);
    const std::vector<Proposal> all = proposed(config, Index{1} << 40);
    for (const Proposal& proposal : all) {
      Entry again = plan(with(config, proposal), 1);
      add_estimate(again);
      EXPECT_EQ(again.total_bytes(), proposal.entry.total_bytes());
      EXPECT_EQ(again.estimate->seconds(), proposal.entry.estimate->seconds());
    }
    EXPECT_TRUE(std::ranges::is_sorted(
        all, {}, [](const Proposal& p) { return p.entry.estimate->seconds(); }));
  }
}

// With one round nothing is kept between rounds, so that zero.gradients makes no difference.
TEST(Proposals, TryEveryStageAndKindOfShardingThatMakesADifference) {
  const auto kinds = [](Index nodes, Index bytes) {
    std::set<std::string> found;
    for (const Proposal& proposal : proposed(deck(nodes, 1), bytes)) {
      std::string kind = std::to_string(proposal.entry.stage);
      for (const auto& [key, value] : proposal.settings)
        if (key.starts_with("zero.") && key != "zero.stage") kind += " " + key;
      found.insert(kind);
    }
    return found;
  };
  deck::Config largest = deck(2, 1);  // with micro-batches of 4 of 12
  largest.zero.stage = 0;
  const Index one_round = Index{1} << 40, several_rounds = plan(largest, 1).device_bytes();
  using Kinds = std::set<std::string>;
  EXPECT_EQ(kinds(1, one_round), (Kinds{"0", "1", "2", "3"}));
  EXPECT_EQ(kinds(2, one_round), (Kinds{"0", "1", "2", "3", "3 zero.gradients zero.parameters"}));
  EXPECT_EQ(kinds(2, several_rounds),
            (Kinds{"0", "1", "2", "2 zero.gradients", "3", "3 zero.gradients",
                   "3 zero.gradients zero.parameters"}));
}

// A device has the scratch of products, and half of the other memory that stage 3 needs.
TEST(Proposals, OffloadWhereItMakesRoom) {
  deck::Config config = deck(1, 1);
  config.run.communicator = deck::CommunicatorKind::nccl;
  config.train.precision = Dtype::bf16;
  config.zero.stage = 3;
  const Index all = plan(config, 1).device_bytes(), scratch = tensor::gemm_workspace_bytes(0);
  const Index half = scratch + (all - scratch) / 2;
  std::map<std::string, std::vector<Proposal>> of_kind;
  for (const Proposal& proposal :
       proposals(config, launch_ranks, 1, {.device = half, .host = all}, add_estimate)) {
    EXPECT_LE(proposal.entry.device_bytes(), half);
    EXPECT_LE(proposal.entry.total_bytes() - proposal.entry.device_bytes(), all);
    std::string kind;
    for (const auto& [key, value] : proposal.settings)
      if (key.ends_with(".offload")) kind += key;
    of_kind[kind].push_back(proposal);
    Entry again = plan(with(config, proposal), 1);
    add_estimate(again);
    EXPECT_EQ(again.device_bytes(), proposal.entry.device_bytes());
    EXPECT_EQ(again.estimate->seconds(), proposal.entry.estimate->seconds());
  }
  EXPECT_TRUE(of_kind.contains("")) << "micro-batches of 1 fit without";
  ASSERT_TRUE(of_kind.contains("zero.offload"));
  EXPECT_TRUE(of_kind.contains("recompute.offload"));
  for (const auto& [kind, offloading] : of_kind) {
    if (kind.empty()) continue;
    for (const Proposal& proposal : offloading)
      for (const Proposal& plain : of_kind[""])
        EXPECT_FALSE(plain.entry.stage == proposal.entry.stage &&
                     plain.entry.recompute.mode == proposal.entry.recompute.mode &&
                     plain.entry.micro_batch >= proposal.entry.micro_batch);
  }
  for (const Proposal& proposal :
       proposals(config, launch_ranks, 1, {.device = all / 2, .host = 0}, add_estimate))
    for (const auto& [key, value] : proposal.settings) EXPECT_FALSE(key.ends_with(".offload"));
}

TEST(Proposals, FitWithTheLargestMicroBatch) {
  const deck::Config config = deck(2, 1);
  std::set<Index> micro_batches;
  for (Index bytes = 1'000'000; bytes < 300'000'000; bytes = bytes * 3 / 2) {
    for (const Proposal& proposal : proposed(config, bytes)) {
      EXPECT_LE(proposal.entry.device_bytes(), bytes);
      micro_batches.insert(proposal.entry.micro_batch);
      deck::Config larger = with(config, proposal);
      for (Index micro = larger.train.micro_batch + 1; micro <= 12; ++micro) {
        if (12 % micro != 0) continue;
        larger.train.micro_batch = micro;
        EXPECT_GT(plan(larger, 1).device_bytes(), bytes) << micro;
      }
    }
  }
  EXPECT_GT(micro_batches.size(), 3) << "budgets make a difference";
}

}  // namespace
}  // namespace kzero::plan
