// Promise 1 for mixtures of experts: losses, norms, the choices of experts and the state are
// bitwise equal on any number of ranks, in any stage and mode of recomputation, whatever the
// routers do. Bytes and traffic are as planned.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "parity/lora_decks.hpp"
#include "support/checkpoints.hpp"
#include "support/document_file.hpp"
#include "support/full_result.hpp"

namespace kzero::tests {
namespace {

using deck::RecomputeMode;

/// A number of experts, widths and rows that do not divide evenly.
deck::Config experts_deck(Dtype precision, deck::ModelFamily family = deck::ModelFamily::llama) {
  deck::Config config = small_deck(precision);
  deck::Model& m = config.model;
  m.family = family;
  m.layers = 2, m.heads = 4, m.kv_heads = 2, m.hidden = 24, m.feed_forward = 19;
  m.experts = 5, m.experts_per_token = 2;
  m.router_aux_loss = 0.05, m.router_z_loss = 0.01;
  m.qk_norm = family == deck::ModelFamily::llama;
  m.normalized_gates = family != deck::ModelFamily::olmoe;
  return config;
}

/// Experts beside a shared one, whose gate their routers compute.
deck::Config shared_deck(Dtype precision) {
  deck::Config config = experts_deck(precision);
  config.model.shared_feed_forward = 29, config.model.shared_gate = true;
  return config;
}

/// Experts that biases balance, and a shared one without a gate.
deck::Config balanced_deck(Dtype precision) {
  deck::Config config = experts_deck(precision);
  deck::Model& m = config.model;
  m.shared_feed_forward = 38;
  m.router_aux_loss = m.router_z_loss = 0;
  m.router_score = deck::RouterScore::sigmoid;
  m.router_bias = true, m.router_bias_rate = 0.01;
  return config;
}

/// All families, or with many ranks on few cores the one that differs most from Llama.
std::vector<deck::Config> all_families(Dtype precision) {
  if (has_few_cores()) return {experts_deck(precision, deck::ModelFamily::olmoe)};
  return {experts_deck(precision), experts_deck(precision, deck::ModelFamily::olmoe),
          experts_deck(precision, deck::ModelFamily::mixtral), shared_deck(precision),
          balanced_deck(precision)};
}

/// Ranks with different numbers of micro-batches send different amounts.
std::optional<FullResult> result_on(const deck::Config& config, int ranks,
                                    const std::string& what) {
  const bool is_even = config.train.global_batch % ranks == 0;
  return is_even ? counted_result_on(config, ranks, what)
                 : planned_result_on(config, ranks, what, 3);
}

class ExpertsOf : public testing::TestWithParam<Dtype> {};

TEST_P(ExpertsOf, AnyRanksInAnyStageHaveTheSameBits) {
  Index stage = launch_ranks();
  for (deck::Config tried : all_families(GetParam())) {
    tried.zero.stage = 0;
    const auto expected = result_on(tried, 1, "one rank");
    for (const int ranks : {2, 3, 4, 8}) {
      if (ranks > launch_ranks() || (has_few_cores() && ranks < launch_ranks())) continue;
      tried.zero.stage = ++stage % 4;
      expect_same(result_on(tried, ranks, "ranks"), expected,
                  std::to_string(ranks) + " ranks, stage " + std::to_string(tried.zero.stage));
    }
    if (launch_ranks() > 1) continue;
    for (const RecomputeMode mode :
         {RecomputeMode::layernorm_gelu, RecomputeMode::feed_forward, RecomputeMode::full}) {
      tried.recompute.mode = mode;
      expect_same(result_on(tried, 1, "mode"), expected, std::string(name_of(mode)));
    }
  }
}

TEST_P(ExpertsOf, TensorGroupsDoNotShowRecomputation) {
  if (launch_ranks() % 2 != 0) return;
  for (deck::Config tried : all_families(GetParam())) {
    tried.grid.tensor = 2;
    for (const bool sequence_parallel : {false, true}) {
      tried.model.sequence_parallel = sequence_parallel;
      tried.recompute.mode = RecomputeMode::none;
      tried.zero.stage = 0;
      const auto expected = result_on(tried, 2, "none");
      tried.zero.stage = 3;
      for (const RecomputeMode mode : {RecomputeMode::layernorm_gelu, RecomputeMode::full}) {
        tried.recompute.mode = mode;
        expect_same(result_on(tried, launch_ranks(), "tensor"), expected,
                    std::string(name_of(mode)));
      }
    }
  }
}

// Each chunk has products of its own, with the rows of its experts.
TEST_P(ExpertsOf, SequenceRanksDoNotShow) {
  deck::Config config = experts_deck(GetParam());
  config.model.sequence = 16;
  config.model.kv_heads = 4;  // a rank's own: gradients of copies are rounded before their sum
  config.model.router_aux_loss = config.model.router_z_loss = 0;
  config.train.sequence_chunks = 4;
  const auto expected = result_on(config, 1, "one");
  for (const Index ranks : {2, 4}) {
    if (ranks > launch_ranks()) continue;
    config.grid.sequence = ranks;
    config.recompute.mode = RecomputeMode::full;
    expect_same(result_on(config, static_cast<int>(ranks), "sequence"), expected,
                std::to_string(ranks) + " sequence ranks");
  }
}

TEST_P(ExpertsOf, AdaptersOfAttentionDoNotShowRanks) {
  deck::Config config = with_lora(experts_deck(GetParam()), {"q_proj", "o_proj"});
  const auto expected = result_on(config, 1, "one");
  config.recompute.mode = RecomputeMode::full;
  config.zero.stage = 3;
  expect_same(result_on(config, launch_ranks(), "adapters"), expected, "adapters");
}

INSTANTIATE_TEST_SUITE_P(Types, ExpertsOf, testing::Values(Dtype::fp32, Dtype::bf16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

/// Trains two steps from weights of which the routers' are `value` of each element. Returns the
/// choices of the first step, of all blocks.
std::vector<std::uint64_t> choices_with_routers(const deck::Config& config,
                                                const grid::Group& group,
                                                float (*value)(Index element)) {
  Training training(config, group);
  training.engine->initialise(
      [&](const param::ParamSpec& p, const checkpoint::Range& range, std::span<float> values) {
        const bool is_router = p.name.ends_with("mlp.gate.weight");
        for (Index i = 0; i < range.count; ++i) {
          const Index element = range.begin + i;
          values[i] = is_router ? value(element)
                                : 0.3F * static_cast<float>((element * 37 + 11) % 17 - 8) / 8;
        }
      });
  const auto results = training.run(0, 2);
  for (const engine::StepResult& result : results) EXPECT_TRUE(std::isfinite(result.loss));
  expect_planned_bytes(training, "routers");
  if (config.train.global_batch % group.size() == 0) expect_planned_traffic(training, "routers");
  return results.front().expert_choices;
}

// Equal probabilities: the lower experts are chosen, and the others compute nothing.
TEST(Experts, OfATieAreTheLowerOnes) {
  const grid::Group world = first_ranks(launch_ranks());
  const deck::Config config = experts_deck(Dtype::fp32);
  const auto choices = choices_with_routers(config, world, [](Index) { return 0.0F; });
  const auto rows = static_cast<std::uint64_t>(config.train.global_batch * config.model.sequence);
  const std::vector<std::uint64_t> of_block{rows, rows, 0, 0, 0};
  std::vector<std::uint64_t> expected = of_block;
  expected.insert(expected.end(), of_block.begin(), of_block.end());
  EXPECT_EQ(choices, expected);
}

// Memory has room for this: nothing is dropped, and no more is used than planned.
TEST(Experts, MayAllBeTheSameForAllTokens) {
  const grid::Group world = first_ranks(launch_ranks());
  deck::Config config = experts_deck(Dtype::fp32);
  config.model.experts_per_token = 1;
  const auto choices = choices_with_routers(config, world, [](Index) { return 0.0F; });
  const auto rows = static_cast<std::uint64_t>(config.train.global_batch * config.model.sequence);
  EXPECT_EQ(choices.front(), rows);
  EXPECT_EQ(std::accumulate(choices.begin(), choices.end(), std::uint64_t{0}), 2 * rows);
}

// Neither recomputation nor a validation nor a second computation of a step adds choices.
TEST(Experts, AreCountedOnceAStep) {
  const grid::Group world = first_ranks(launch_ranks());
  deck::Config config = experts_deck(Dtype::fp32);
  config.recompute.mode = RecomputeMode::full;
  config.run.verify_every = 1;
  Training training(config, world);
  training.engine->initialise({});
  const auto rows = static_cast<std::uint64_t>(config.train.global_batch * config.model.sequence);
  for (Index step = 0; step < 2; ++step) {
    const auto choices = training.step(step).expert_choices;
    ASSERT_EQ(choices.size(), 10u);
    for (const auto block : {choices.begin(), choices.begin() + 5})
      EXPECT_EQ(std::accumulate(block, block + 5, std::uint64_t{0}), 2 * rows) << step;
    training.engine->validate(2, *training.dataset.training);
  }
}

// A padded row is computed, but counts neither in the choices nor in the losses of routers.
TEST(Experts, DoNotCountPadding) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder files(world);
  deck::Config config = experts_deck(Dtype::fp32);
  const std::vector<Index> lengths(64, 8);  // of rows of 13
  config.data.files = {
      DocumentNumbers(numbered_documents(lengths, 101)).write(files.path() / "training.docs")};
  config.data.format = deck::DataFormat::documents;
  world.barrier();
  Training training(config, world);
  training.engine->initialise({});
  const auto choices = training.step(0).expert_choices;
  const auto rows = static_cast<std::uint64_t>(config.train.global_batch * 8);
  EXPECT_EQ(std::accumulate(choices.begin(), choices.end(), std::uint64_t{0}), 2 * 2 * rows);
}

// The rank that has an expert's state, or the bias of a router, changes with the grid.
TEST(Experts, RestartOnAnotherGrid) {
  const grid::Group world = first_ranks(launch_ranks());
  for (const deck::OptimizerKind kind : {deck::OptimizerKind::adamw, deck::OptimizerKind::muon}) {
    const bool is_adamw = kind == deck::OptimizerKind::adamw;
    deck::Config config = is_adamw ? balanced_deck(Dtype::bf16) : experts_deck(Dtype::bf16);
    config.optimizer.kind = kind;
    set_offload_if_needed(config);
    config.train.steps = 4;
    const SharedFolder folder(world);
    Training first(config, world);
    first.engine->initialise({});
    first.run(0, 2);
    save(first, world, folder.path(), 2);
    const auto expected = numbers_of(first.run(2, 4));
    const FullState state = full_state(first.engine->owned_shards(), world);
    const grid::Group one = first_ranks(1);
    if (!is_among_first(1)) continue;
    config.zero.stage = 3;
    config.recompute.mode = RecomputeMode::full;
    Training second(config, one);
    ASSERT_EQ(load(second, one, folder.path()), 2);
    EXPECT_TRUE(same_bits(numbers_of(second.run(2, 4)), expected)) << name_of(kind);
    EXPECT_TRUE(same_bits(full_state(second.engine->owned_shards(), one), state)) << name_of(kind);
  }
}

}  // namespace
}  // namespace kzero::tests
