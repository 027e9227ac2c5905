// A model other than GPT-2 trains in every stage with the same bits and with the planned bytes and
// messages. zero/, engine/, run/ and plan/ depend only on a model's definition.
#include <gtest/gtest.h>

#include "engine/expected_traffic.hpp"
#include "support/outcome.hpp"
#include "support/toy_model.hpp"

namespace kzero::tests {
namespace {

/// Two micro-batches per rank, and units that need padding on 2 or more ranks.
deck::Config toy_deck(Dtype precision) {
  deck::Config config = small_deck(precision);
  config.train.global_batch = 2 * launch_ranks();
  config.optimizer.loss_scale = 256;  // no step overflows
  config.optimizer.clip = 0.01;       // below the first norms
  return config;
}

/// Every stage, with and without overlap, in buckets smaller and larger than a unit.
std::vector<deck::Zero> every_stage() {
  std::vector<deck::Zero> all;
  for (const Index stage : {0, 1, 2, 3}) {
    for (const auto overlap : {deck::Overlap::off, deck::Overlap::on}) {
      const Index bucket = overlap == deck::Overlap::on ? 509 : 1 << 20;
      all.push_back({.stage = stage, .bucket = bucket, .overlap = overlap});
    }
  }
  return all;
}

std::string described(const deck::Zero& zero) {
  return "stage " + std::to_string(zero.stage) +
         (zero.overlap == deck::Overlap::on ? ", overlap" : "");
}

class SecondModel : public testing::TestWithParam<Dtype> {
 protected:
  const grid::Group group = first_ranks(launch_ranks());
};

TEST_P(SecondModel, TrainsInEveryStageWithTheSameBits) {
  deck::Config config = toy_deck(GetParam());
  for (const auto accumulate : {deck::Accumulate::automatic, deck::Accumulate::local}) {
    config.zero = {.stage = 0, .accumulate = accumulate};
    const Outcome expected = train_outcome(config, group, {.family = define_toy});
    EXPECT_LT(expected.numbers[15], expected.numbers[0]) << "the loss of step 3 and of step 0";
    for (deck::Zero zero : every_stage()) {
      if (accumulate == deck::Accumulate::local && zero.stage > 1) continue;
      zero.accumulate = accumulate;
      config.zero = zero;
      expect_same(train_outcome(config, group, {.family = define_toy}), expected, described(zero));
    }
  }
}

TEST_P(SecondModel, HoldsAndSendsWhatIsPlanned) {
  deck::Config config = toy_deck(GetParam());
  for (const deck::Zero& zero : every_stage()) {
    config.zero = zero;
    Training training(config, group, deck::GemmBackend::automatic, {.family = define_toy});
    training.engine->initialise({});
    training.run(0, 2);
    training.engine->validate(1, *training.dataset.training);
    expect_planned_bytes(training, described(zero));
    const engine::Blueprint& blueprint = training.engine->blueprint();
    EXPECT_EQ(param::elements_of(blueprint.table), 2 * 101 * 15 + 101);
    const auto rows =
        engine::counted(training.traffic, engine::expected_traffic(training.config, blueprint));
    const std::size_t kinds = blueprint.stage.shared ? 1 : 2;  // gradients only, or parameters, too
    EXPECT_EQ(rows.size(), group.size() == 1 ? 0 : kinds);
    for (const metrics::TrafficRow& row : rows) {
      EXPECT_GT(row.elements_per_step, 0) << described(zero);
      EXPECT_EQ(row.elements_per_step, row.expected_elements_per_step) << described(zero);
      EXPECT_EQ(row.bytes_per_step, row.expected_bytes_per_step) << described(zero);
    }
  }
}

// A linear model learns less from a larger batch, in which different tokens follow the same token.
TEST(SecondModelLoss, Falls) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = toy_deck(Dtype::fp32);
  config.train.steps = 60;
  config.optimizer.lr = 3e-2, config.optimizer.clip = 0;
  Training training(config, group, deck::GemmBackend::automatic, {.family = define_toy});
  training.engine->initialise({});
  const double first = training.step(0).loss;
  EXPECT_GT(first, 0.5) << "half of the square of the one that is missing, and some noise";
  double last = 0;
  for (Index s = 1; s < config.train.steps; ++s) {
    last = training.engine->step(0, *training.dataset.training).loss;
  }
  EXPECT_LT(last, 0.75 * first);
}

INSTANTIATE_TEST_SUITE_P(Precisions, SecondModel,
                         testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
