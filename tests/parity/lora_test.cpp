// Adapters (LoRA): the same bits on any number of ranks and in any stage, memory and traffic as
// planned, and restarts on other grids.
#include <gtest/gtest.h>

#include <optional>

#include "engine/expected_traffic.hpp"
#include "engine/memory_report.hpp"
#include "parity/lora_decks.hpp"
#include "support/checkpoints.hpp"
#include "support/full_result.hpp"
#include "support/outcome.hpp"

namespace kzero::tests {
namespace {

class LoraBits : public testing::TestWithParam<Dtype> {};

TEST_P(LoraBits, DoNotShowRanksOrStages) {
  for (deck::Config config :
       {with_lora(small_deck(GetParam())),
        with_lora(as_llama(small_deck(GetParam()), 1), {"q_proj", "up_proj"})}) {
    config.train.global_batch = 12;
    for (const Index micro_batch : {1, 3}) {
      config.train.micro_batch = micro_batch;
      config.zero.stage = 0;
      const auto expected = planned_result_on(config, 1, "adapters");
      for (const Index stage : {1, 2, 3}) {
        if (launch_ranks() > 1 && stage != micro_batch) continue;
        config.zero.stage = stage;
        expect_same(planned_result_on(config, 1, "adapters"), expected,
                    "stage " + std::to_string(stage));
      }
      for (const int ranks : {2, 3, 4}) {
        if (ranks > launch_ranks()) continue;
        for (const Index stage : {0, 1, 2, 3}) {
          if (ranks < launch_ranks() && stage % 3 != 0) continue;
          config.zero.stage = stage;
          for (const Index node : {Index{0}, Index{1}}) {  // shared memory, or gathers
            config.grid.node = node;
            expect_same(planned_result_on(config, ranks, "adapters"), expected,
                        std::to_string(ranks) + " ranks, stage " + std::to_string(stage));
          }
          config.grid.node = 0;
        }
      }
    }
  }
}

TEST_P(LoraBits, DoNotShowStagesOrRecomputationInATensorGroup) {
  using deck::RecomputeMode;
  const grid::Group group = first_ranks(launch_ranks());
  for (const Index tensor : lora_tensor_sizes(2)) {
    for (deck::Config config : {with_lora(lora_deck(tensor, GetParam())),
                                with_lora(as_llama(lora_deck(tensor, GetParam()), 2))}) {
      config.model.sequence_parallel = config.model.family == deck::ModelFamily::gpt2;
      const Outcome expected = train_outcome(config, group);
      for (const Index stage : {1, 2, 3}) {
        config.zero.stage = stage;
        config.recompute.mode = stage == 1 ? RecomputeMode::layernorm_gelu : RecomputeMode::full;
        expect_same(train_outcome(config, group), expected, "stage " + std::to_string(stage));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LoraBits, testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

/// Sets of targets whose lowest adapter is at each GEMM of a block.
std::vector<deck::Config> decks_by_lowest_adapter(Index tensor) {
  std::vector<deck::Config> all;
  const deck::Config gpt2 = lora_deck(tensor), llama = as_llama(lora_deck(tensor), 2);
  for (const Targets& targets : {Targets{"c_attn"}, {"c_proj"}, {"c_fc"}})
    all.push_back(with_lora(gpt2, targets));
  for (const Targets& targets : {Targets{"k_proj", "down_proj"},
                                 {"o_proj"},
                                 {"gate_proj"},
                                 {"down_proj"},
                                 {"v_proj", "o_proj", "up_proj"}})
    all.push_back(with_lora(llama, targets));
  return all;
}

TEST(Lora, BytesAndTrafficAreThePlans) {
  const grid::Group group = first_ranks(launch_ranks());
  Index variant = 0;
  for (const Index tensor : lora_tensor_sizes(1)) {
    for (deck::Config config : decks_by_lowest_adapter(tensor)) {
      config.zero.stage = ++variant % 4;
      config.model.sequence_parallel = tensor > 1 && variant % 2 == 0;
      config.grid.node = 1;
      if (variant % 3 == 0) config.recompute.mode = deck::RecomputeMode::full;
      std::string what = "tensor " + std::to_string(tensor) + ", stage " +
                         std::to_string(config.zero.stage) + ", targets";
      for (const std::string& target : config.lora.targets) what += ' ' + target;
      Training training(config, group);
      training.engine->initialise({});
      training.run(0, 2);
      training.engine->validate(1, *training.dataset.training);
      expect_planned_bytes(training, what);
      const auto rows = engine::counted(
          training.traffic, engine::expected_traffic(training.config, training.engine->blueprint(),
                                                     training.grid.data().rank()));
      for (const metrics::TrafficRow& row : rows) {
        EXPECT_EQ(row.elements_per_step, row.expected_elements_per_step)
            << what << ": " << row.group << ' ' << row.operation << ' ' << row.purpose;
        EXPECT_EQ(row.bytes_per_step, row.expected_bytes_per_step) << what;
      }
    }
  }
}

// Frozen weights have their 16-bit values alone, which stage 3 partitions.
TEST(Lora, FrozenWeightsHaveNoState) {
  for (const Index stage : {0, 3}) {
    deck::Config config = with_lora(small_deck(Dtype::bf16));
    config.train.global_batch = 4, config.zero.stage = stage, config.grid.node = 1;
    config = resolved(config, 4);
    const engine::Blueprint b(config, 4);
    const memory::Bytes planned = engine::planned_bytes(config, b, 1);
    const auto bytes = [&](memory::Category category) { return planned[position(category)]; };
    const Index share = stage == 3 ? 4 : 1;
    EXPECT_EQ(bytes(memory::Category::optimizer), 12 * b.trained_layout.total() / share);
    const Index gathered =
        std::max(b.training.gathered_elements(), b.validation.gathered_elements());
    EXPECT_EQ(bytes(memory::Category::parameters), 2 * (b.layout.total() / share + gathered));
    EXPECT_EQ(param::elements_of(b.trained),
              3 * 3 * (15 + 45 + 15 + 15 + 15 + 60 + 60 + 15));  // 3 blocks, rank 3
    EXPECT_LT(bytes(memory::Category::gradients), 2 * b.layout.total() / share);
  }
}

TEST(Lora, EveryOptimizerTrainsAdapters) {
  const grid::Group group = first_ranks(launch_ranks());
  for (const auto& [name, kind, meaning] : deck::optimizers) {
    deck::Config config = with_lora(as_llama(lora_deck(1), 2));
    config.optimizer.kind = kind;
    set_offload_if_needed(config);
    config.zero.stage = 0;
    Training training(config, group);
    training.engine->initialise({});
    const FullState before = full_state(training.engine->owned_shards(), group);
    training.run(0, 2);
    const FullState after = full_state(training.engine->owned_shards(), group);
    for (const auto& [array, values] : after) {
      if (!array.ends_with("/master")) continue;
      EXPECT_NE(values, before.at(array)) << name << ' ' << array;
    }
    config.zero.stage = 3;
    Training other(config, group);
    other.engine->initialise({});
    other.run(0, 2);
    EXPECT_TRUE(same_bits(full_state(other.engine->owned_shards(), group), after)) << name;
  }
}

TEST(Lora, ARestartIsBitForBitInAnotherStageAndKeepsTheStateOnAnotherGrid) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = with_lora(as_llama(lora_deck(1), 2));
  Training straight(config, group);
  straight.engine->initialise({});
  const auto expected = straight.run(0, 6);
  const SharedFolder folder(group);
  Training first(config, group);
  first.engine->initialise({});
  std::vector<engine::StepResult> results = first.run(0, 3);
  save(first, group, folder.path(), 3);
  const FullState saved = full_state(first.engine->owned_shards(), group);
  for (const auto& array : saved)
    EXPECT_NE(array.first.find(".lora_"), std::string::npos) << array.first;

  config.zero.stage = 3;
  Training second(config, group);
  second.engine->initialise({});
  EXPECT_EQ(second.engine->base_hash(), straight.engine->base_hash());
  ASSERT_EQ(load(second, group, folder.path()), 3);
  for (const auto& result : second.run(3, 6)) results.push_back(result);
  EXPECT_TRUE(same_bits(numbers_of(results), numbers_of(expected)));

  for (const Index tensor : lora_tensor_sizes(2)) {
    deck::Config split = with_lora(as_llama(lora_deck(tensor), 2));
    split.train.global_batch = config.train.global_batch;
    split.zero.stage = 2;
    Training third(split, group);
    third.engine->initialise({});
    EXPECT_EQ(third.engine->base_hash(), straight.engine->base_hash());
    ASSERT_EQ(load(third, group, folder.path()), 3);
    EXPECT_TRUE(same_bits(full_state(third.engine->owned_shards(), group), saved));
    const auto more = third.run(3, 6);
    for (std::size_t i = 0; i < more.size(); ++i)
      EXPECT_NEAR(more[i].loss, expected[i + 3].loss, 1e-5 * expected[i + 3].loss);
  }
}

}  // namespace
}  // namespace kzero::tests
