// Every optimizer kind that a deck can name gives the same bits in every stage, on any number of
// data-parallel ranks and after a restart, also with groups and an average of the weights. It uses
// the planned memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "deck/reader.hpp"
#include "support/checkpoints.hpp"
#include "support/full_state.hpp"
#include "support/outcome.hpp"

namespace kzero::tests {
namespace {

struct Variant {
  deck::OptimizerKind kind;
  Dtype precision;
  bool has_options = false;  // groups, an average, and what only some kinds have
};

bool has_key(deck::OptimizerKind kind, std::string_view name) {
  return std::ranges::any_of(deck::optimizer_keys, [&](const deck::OptimizerKey& key) {
    return key.kind == kind && key.name == name;
  });
}

/// Uses the kind's defaults and a clipping threshold below the first norms.
deck::Config deck_of(const Variant& variant) {
  deck::Config config = small_deck(variant.precision);
  config.optimizer =
      deck::read({"test", ""}, {"optimizer.kind=" + std::string(name_of(variant.kind))}).optimizer;
  config.optimizer.lr = variant.kind == deck::OptimizerKind::sgd ? 0.05 : 1e-3;
  config.optimizer.min_lr = 1e-4, config.optimizer.warmup = 2, config.optimizer.clip = 0.5;
  config.model.layers = 2;
  if (variant.has_options) {
    config.optimizer.groups = {
        {"*attn*weight", 0.5, 0.02}, {"*weight", 1, 0}, {"*bias", 0.25, 0.01}};
    config.optimizer.ema = 0.75;
    config.optimizer.cautious_decay = has_key(variant.kind, "cautious_decay");
    if (variant.kind == deck::OptimizerKind::muon || variant.kind == deck::OptimizerKind::normuon)
      config.optimizer.polynomials = deck::Polynomials::polar_express;
  }
  if (variant.kind == deck::OptimizerKind::ademamix) config.optimizer.slow_warmup = 3;
  set_offload_if_needed(config);
  return config;
}

class OptimizerKinds : public testing::TestWithParam<Variant> {
 protected:
  deck::Config config = deck_of(GetParam());
  const grid::Group group = first_ranks(launch_ranks());
};

TEST_P(OptimizerKinds, TrainInEveryStageWithTheSameBits) {
  const Outcome expected = train_outcome(config, group);
  EXPECT_LT(expected.numbers[15], expected.numbers[0] - 1e-3) << "the fourth loss below the first";
  for (const Index stage : {1, 2, 3}) {
    config.zero.stage = stage;
    expect_same(train_outcome(config, group), expected, "stage " + std::to_string(stage));
  }
}

TEST_P(OptimizerKinds, OnTheHostTrainInEveryStageWithTheSameBits) {
  config.zero.offload = deck::Offload::host;
  config.zero.bucket = 256;  // copies of 64 elements
  const Outcome expected = train_outcome(config, group);
  for (const Index stage : {2, 3}) {
    config.zero.stage = stage;
    expect_same(train_outcome(config, group), expected, "stage " + std::to_string(stage));
  }
}

TEST_P(OptimizerKinds, HoldWhatIsPlanned) {
  for (const Index stage : {0, 1, 2, 3}) {
    config.zero.stage = stage;
    Training training(config, group);
    training.engine->initialise({});
    training.run(0, 1);
    training.engine->validate(1, *training.dataset.training);
    expect_planned_bytes(training, "stage " + std::to_string(stage));
  }
}

/// The losses and the full state after four steps on the first ranks. Empty on the other ranks.
struct FourSteps {
  std::vector<double> numbers;
  FullState state;
};

FourSteps four_steps_on(const deck::Config& config, int ranks) {
  const grid::Group some = first_ranks(ranks);
  if (!is_among_first(ranks)) return {};
  Training training(config, some);
  training.engine->initialise({});
  FourSteps result{numbers_of(training.run(0, 4)), {}};
  result.state = full_state(training.engine->owned_shards(), some);
  return result;
}

void expect_any_number_of_ranks(deck::Config config) {
  const auto tensor = static_cast<int>(config.grid.tensor);
  const FourSteps expected = four_steps_on(config, tensor);
  for (const int data : {2, 3, 4}) {
    if (data * tensor > launch_ranks()) continue;
    config.zero.stage = data;  // 4 is not a stage: stage 0
    if (data == 4) config.zero.stage = 0;
    const FourSteps found = four_steps_on(config, data * tensor);
    if (found.numbers.empty() || expected.numbers.empty()) continue;
    EXPECT_TRUE(same_bits(found.numbers, expected.numbers)) << data << " data-parallel ranks";
    EXPECT_TRUE(same_bits(found.state, expected.state)) << data << " data-parallel ranks";
  }
}

TEST_P(OptimizerKinds, DoNotShowTheNumberOfRanks) { expect_any_number_of_ranks(config); }

TEST_P(OptimizerKinds, DoNotShowTheNumberOfRanksBesideTensorParallelism) {
  if (launch_ranks() < 4) GTEST_SKIP() << "needs 4 ranks";
  config.model.hidden = 16, config.model.heads = 4;
  config.grid.tensor = 2;
  expect_any_number_of_ranks(config);
  expect_any_number_of_ranks(as_llama(config, 1));
}

TEST_P(OptimizerKinds, RestartInAnotherStageBitForBit) {
  Training straight(config, group);
  straight.engine->initialise({});
  const auto expected = straight.run(0, 4);
  for (const auto& [from, to] : {std::pair<Index, Index>{0, 3}, {3, 1}, {2, 0}}) {
    const SharedFolder folder(group);
    std::vector<engine::StepResult> results;
    {
      config.zero.stage = from;
      Training first(config, group);
      first.engine->initialise({});
      results = first.run(0, 2);
      save(first, group, folder.path(), 2);
    }
    config.zero.stage = to;
    Training second(config, group);
    ASSERT_EQ(load(second, group, folder.path()), 2);
    for (const auto& result : second.run(2, 4)) results.push_back(result);
    EXPECT_TRUE(same_bits(numbers_of(results), numbers_of(expected))) << from << " to " << to;
    EXPECT_EQ(owned_state(second), owned_state(straight)) << from << " to " << to;
  }
}

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const auto& [name, kind, meaning] : deck::optimizers) {
    for (const Dtype precision : {Dtype::fp32, Dtype::bf16}) all.push_back({kind, precision});
    all.push_back({kind, Dtype::bf16, true});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerKinds, testing::ValuesIn(variants()), [](const auto& test) {
  return std::string(name_of(test.param.kind)) + "_" + std::string(name_of(test.param.precision)) +
         (test.param.has_options ? "_with_options" : "");
});

}  // namespace
}  // namespace kzero::tests
