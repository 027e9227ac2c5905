// Promise 1 for documents: training on packed documents gives the same bits on any number of ranks
// and in any stage, although ranks hold different numbers of targets. Steps without targets change
// nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "parity/lora_decks.hpp"
#include "parity/shifted_source.hpp"
#include "support/checkpoints.hpp"
#include "support/document_file.hpp"
#include "support/full_result.hpp"
#include "support/outcome.hpp"

namespace kzero::tests {
namespace {

constexpr Index row_tokens = 13;  // tokens; the sequence of small_deck()

std::vector<Document> training_documents() {
  std::vector<Index> lengths;
  for (Index i = 0; i < 160; ++i) lengths.push_back(1 + (i * 29 + i * i) % row_tokens);
  return numbered_documents(lengths, 101);
}

Document without_targets(Index length) {
  Document document;
  for (Index i = 0; i < length; ++i) document.tokens.push_back(static_cast<Token>(7 * i % 101));
  document.targets.resize(static_cast<std::size_t>(length), 0);
  return document;
}

deck::Config documents_deck(const std::filesystem::path& folder, Dtype precision = Dtype::fp32) {
  deck::Config config = small_deck(precision);
  config.model.layers = 2;
  config.data.files = {DocumentNumbers(training_documents()).write(folder / "training.docs")};
  config.data.format = deck::DataFormat::documents;
  return config;
}

class Documents : public testing::TestWithParam<Dtype> {};

TEST_P(Documents, DoNotShowTheNumberOfRanks) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder files(world);
  deck::Config config = documents_deck(files.path(), GetParam());
  world.barrier();
  deck::Config stream = small_deck(GetParam());
  stream.data.end_token = 7;
  for (deck::Config tried : {config, as_llama(config, 1), stream}) {
    tried.train.global_batch = 12;
    for (const Index micro_batch : {1, 2}) {
      tried.train.micro_batch = micro_batch;
      tried.zero.stage = 0;
      const auto expected = planned_result_on(tried, 1, "documents");
      Index stage = micro_batch;
      for (const int data : {2, 3, 4, 8}) {
        if (data > launch_ranks() || data > 12 / micro_batch) continue;
        tried.zero.stage = ++stage % 4;
        expect_same(planned_result_on(tried, data, "documents"), expected,
                    std::to_string(data) + " ranks, stage " + std::to_string(tried.zero.stage));
      }
      if (launch_ranks() > 1) continue;
      for (const Index alone : {1, 2, 3}) {
        tried.zero.stage = alone;
        expect_same(planned_result_on(tried, 1, "documents"), expected,
                    "stage " + std::to_string(alone));
      }
    }
  }
}

TEST_P(Documents, DoNotShowRecomputationInATensorGroup) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder files(world);
  deck::Config config = documents_deck(files.path(), GetParam());
  world.barrier();
  config.model.heads = 8, config.model.hidden = 24, config.model.feed_forward = 53;
  config.grid.tensor = launch_ranks() % 2 == 0 ? 2 : 1;
  for (deck::Config tried : {config, as_llama(config, 2)}) {
    for (const bool sequence_parallel : {false, true}) {
      tried.model.sequence_parallel = sequence_parallel && tried.grid.tensor > 1;
      tried.recompute = {};
      tried.zero.stage = 0;
      const Outcome expected = train_outcome(tried, world);
      tried.zero.stage = 3;
      tried.recompute.mode = deck::RecomputeMode::layernorm_gelu;
      expect_same(train_outcome(tried, world), expected, "layernorm_gelu");
      tried.recompute.mode = deck::RecomputeMode::full;
      tried.recompute.partition = !tried.model.sequence_parallel;
      expect_same(train_outcome(tried, world), expected, "full");
    }
  }
}

/// Weights of both signs, some 0.
std::vector<float> some_weights(std::size_t count) {
  std::vector<float> weights;
  for (std::size_t d = 0; d < count; ++d)
    weights.push_back(0.375F * static_cast<float>(d * d % 7) - 0.5F * static_cast<float>(d % 3));
  return weights;
}

deck::Config weighted_deck(const std::filesystem::path& folder, std::vector<float> weights,
                           Dtype precision = Dtype::fp32) {
  deck::Config config = documents_deck(folder, precision);
  config.train.global_batch = 12;
  config.data.files = {
      DocumentNumbers(training_documents(), std::move(weights)).write(folder / "weighted.docs")};
  return config;
}

TEST_P(Documents, WithWeightsDoNotShowTheNumberOfRanks) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder files(world);
  const auto weights = some_weights(training_documents().size());
  const deck::Config config = weighted_deck(files.path(), weights, GetParam());
  world.barrier();
  using deck::RecomputeMode;
  constexpr RecomputeMode modes[] = {RecomputeMode::none, RecomputeMode::layernorm_gelu,
                                     RecomputeMode::feed_forward, RecomputeMode::full};
  for (deck::Config tried : {config, with_lora(as_llama(config, 1))}) {
    const auto expected = planned_result_on(tried, 1, "weights");
    for (const int data : {1, 2, 3, 4}) {
      if (data > launch_ranks()) continue;
      tried.zero.stage = data % 4, tried.recompute.mode = modes[data % 4];
      tried.train.micro_batch = data == 2 ? 2 : 1;
      const auto alone = data == 2 ? planned_result_on(tried, 1, "weights") : expected;
      expect_same(planned_result_on(tried, data, "weights"), alone,
                  std::to_string(data) + " ranks");
    }
  }
}

TEST(Documents, WithWeightsOfOneHaveTheBitsOfThoseWithout) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder files(world);
  const std::size_t count = training_documents().size();
  const deck::Config plain = documents_deck(files.path());
  const auto outcome_of = [&](const std::vector<float>& weights) {
    deck::Config config = weighted_deck(files.path(), weights);
    world.barrier();
    config.train.global_batch = plain.train.global_batch;
    const Outcome outcome = train_outcome(config, world);
    world.barrier();  // before the file is replaced
    return outcome;
  };
  world.barrier();
  const Outcome expected = train_outcome(plain, world);
  expect_same(outcome_of(std::vector<float>(count, 1)), expected, "weights of 1");
  EXPECT_FALSE(same_bits(outcome_of(some_weights(count)).numbers, expected.numbers));
}

TEST(Documents, AnEvaluationHasNoWeights) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder files(world);
  const auto weights = some_weights(training_documents().size());
  Training with(weighted_deck(files.path(), weights), world),
      without(documents_deck(files.path()), world);
  for (Training* training : {&with, &without}) training->engine->initialise({});
  EXPECT_EQ(with.engine->evaluate(5, *with.dataset.training),
            without.engine->evaluate(5, *without.dataset.training));
}

TEST(Documents, InAStreamChangeWhatIsLearned) {
  const grid::Group world = first_ranks(launch_ranks());
  deck::Config config = small_deck();
  const Outcome whole = train_outcome(config, world);
  config.data.end_token = 7;
  EXPECT_FALSE(same_bits(train_outcome(config, world).numbers, whole.numbers));
}

TEST(Documents, RanksHaveDifferentNumbersOfTargets) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder files(world);
  const deck::Config config = documents_deck(files.path());
  world.barrier();
  const data::Dataset dataset = data::open_dataset(config.data, 13, 101, config.train.seed);
  EXPECT_NE(dataset.training->targets(0, 4), dataset.training->targets(4, 4));
}

/// In file order, a step's rows come first, then `empty_steps` times as many without a target.
deck::Config deck_with_empty_steps(const std::filesystem::path& folder, Index empty_steps) {
  deck::Config config = documents_deck(folder);
  config.data.order = deck::DataOrder::sequential;
  config.optimizer.schedule = deck::Schedule::constant, config.optimizer.warmup = 0;
  auto documents = training_documents();
  Index rows = 1, at = 0;
  for (Index d = 0; d < 20; at += documents[d++].size()) {
    if (at + documents[d].size() > row_tokens) ++rows, at = 0;
  }
  std::vector<Document> between(static_cast<std::size_t>(empty_steps * rows),
                                without_targets(row_tokens));
  if (at < row_tokens) between.insert(between.begin(), without_targets(row_tokens - at));
  documents.insert(documents.begin() + 20, between.begin(), between.end());
  config.train.global_batch = rows;
  config.data.files = {
      DocumentNumbers(documents).write(folder / (std::to_string(empty_steps) + ".docs"))};
  return config;
}

TEST(Documents, AStepWithoutTargetsChangesNothing) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder files(world);
  deck::Config with = deck_with_empty_steps(files.path(), 2);
  deck::Config without = deck_with_empty_steps(files.path(), 0);
  world.barrier();
  with.zero.stage = 3, without.zero.stage = 1;
  with.optimizer.max_skipped = 1;
  for (deck::Config* config : {&with, &without})
    config->optimizer.skip_above = 100, config->optimizer.skip_window = 3;
  Training training(with, world), expected(without, world);
  training.engine->initialise({});
  expected.engine->initialise({});
  const auto results = training.run(0, 5), other = expected.run(0, 3);
  for (const Index empty : {1, 2}) {
    EXPECT_TRUE(results[empty].is_empty());
    EXPECT_TRUE(results[empty].skipped);
    EXPECT_TRUE(std::isnan(results[empty].loss));
    EXPECT_EQ(results[empty].grad_norm, 0);
  }
  EXPECT_EQ(training.engine->scaler().skipped(), 2);
  training.engine->scaler().require_progress();
  EXPECT_EQ(training.engine->spike_rule().norms(), expected.engine->spike_rule().norms());
  const auto numbers = numbers_of({results[0], results[3], results[4]});
  EXPECT_TRUE(same_bits(numbers, numbers_of(other)));
  for (const auto& result : {results[0], results[3], results[4]}) EXPECT_FALSE(result.skipped);
  EXPECT_TRUE(same_bits(full_state(training.engine->owned_shards(), world),
                        full_state(expected.engine->owned_shards(), world)));
}

// Micro-batches have different numbers of targets, so the mean of their means is another number.
TEST(Documents, AnEvaluationIsTheMeanOverTargets) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder files(world);
  deck::Config config = documents_deck(files.path());
  config.train.global_batch = 12;
  config.data.validation_fraction = 0.5, config.data.order = deck::DataOrder::sequential;
  world.barrier();
  Training training(config, world);
  training.engine->initialise({});
  const data::BatchSource& samples = *training.dataset.validation;
  const Index size = config.train.micro_batch;
  double sum = 0, means = 0;
  Index targets = 0;
  std::vector<Token> inputs(static_cast<std::size_t>(size * row_tokens)), next(inputs.size());
  for (Index m = 0; m < 5; ++m) {
    samples.batch(m * size, size, inputs.data(), next.data());
    const auto count = std::ranges::count_if(next, [](Token token) { return token >= 0; });
    const double mean = training.engine->evaluate(1, ShiftedSource(samples, m * size));
    sum += static_cast<double>(count) * mean;
    means += mean;
    targets += count;
  }
  const double expected = sum / static_cast<double>(targets);
  EXPECT_NEAR(training.engine->evaluate(5, samples), expected, 1e-12 * expected);
  EXPECT_GT(std::abs(means / 5 - expected), 1e-6 * expected) << "the case cannot tell the means";
  EXPECT_EQ(training.engine->validate(1, samples), training.engine->evaluate(12 / size, samples));
}

TEST(Documents, ARestartContinuesInAnyEpoch) {
  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder files(world);
  deck::Config config = documents_deck(files.path());
  world.barrier();
  config.train.global_batch = 40;  // an epoch has 100 to 110 rows
  Training straight(config, world);
  straight.engine->initialise({});
  const auto results = straight.run(0, 5);
  save(straight, world, files.path(), 5);
  Training again(config, world);
  EXPECT_EQ(load(again, world, files.path() / "step_00000005"), 5);
  EXPECT_TRUE(same_bits(numbers_of(again.run(5, 8)), numbers_of(straight.run(5, 8))));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Documents, testing::Values(Dtype::fp32, Dtype::bf16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
