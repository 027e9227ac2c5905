// run.verify_every: a run on healthy nodes keeps its bits, plan and traffic. A run with a rank that
// computes wrongly stops and names that rank.
#include <gtest/gtest.h>

#include "engine/engine.hpp"
#include "engine/expected_traffic.hpp"
#include "engine/memory_report.hpp"
#include "runtime/host_name.hpp"
#include "support/faulty_model.hpp"
#include "support/outcome.hpp"

namespace kzero::tests {
namespace {

/// Two micro-batches per rank, plus one in total.
deck::Config verified_deck(Dtype precision, Index tensor = 1) {
  deck::Config config = small_deck(precision);
  config.model.layers = 2;
  config.train.global_batch = 2 * (launch_ranks() / tensor) + 1;
  config.optimizer.clip = 0.5;  // below the first norms
  config.run.verify_every = 1;
  if (tensor > 1) config.model.hidden = 16, config.model.heads = 4;
  config.grid.tensor = tensor;
  return config;
}

std::vector<deck::Zero> stages() {
  return {{.stage = 0, .bucket = 509},
          {.stage = 1, .overlap = deck::Overlap::on},
          {.stage = 2, .bucket = 509, .overlap = deck::Overlap::on},
          {.stage = 2},
          {.stage = 3, .bucket = 509, .prefetch_units = 0},
          {.stage = 3, .overlap = deck::Overlap::on},
          {.stage = 0, .accumulate = deck::Accumulate::local},
          {.stage = 1, .accumulate = deck::Accumulate::local}};
}

std::string words_of(const deck::Zero& zero) {
  return "stage " + std::to_string(zero.stage) +
         (zero.overlap == deck::Overlap::on ? ", overlap" : "") +
         (zero.accumulate == deck::Accumulate::local ? ", local" : "");
}

class VerificationIn : public testing::TestWithParam<Dtype> {
 protected:
  VerificationIn() { fault = {}; }

  void expect_same_bits(deck::Config config, const std::vector<deck::Zero>& among) const {
    for (const deck::Zero& zero : among) {
      config.zero = zero;
      config.run.verify_every = 0;
      const Outcome expected = train_outcome(config, group);
      config.run.verify_every = zero.stage == 2 ? 3 : 1;
      expect_same(train_outcome(config, group), expected, words_of(zero));
    }
  }

  const grid::Group group = first_ranks(launch_ranks());
};

TEST_P(VerificationIn, LeavesTheBitsOfARun) {
  expect_same_bits(verified_deck(GetParam()), stages());
}

// Non-finite gradients are compared like other gradients.
TEST_P(VerificationIn, LeavesTheBitsOfSkippedSteps) {
  if (GetParam() != Dtype::fp16) return;  // has a loss scale
  deck::Config config = verified_deck(GetParam());
  config.optimizer.loss_scale = 0x1p24;
  config.optimizer.loss_scale_window = 1;
  expect_same_bits(config, {{.stage = 0}, {.stage = 3}});
}

TEST_P(VerificationIn, LeavesTheBitsWithTensorParallelismAndRecomputation) {
  deck::Config config = verified_deck(GetParam(), launch_ranks() % 2 == 0 ? 2 : 1);
  config.recompute = {.mode = deck::RecomputeMode::full, .offload = deck::Offload::host};
  expect_same_bits(config, {{.stage = 0}, {.stage = 3, .overlap = deck::Overlap::on}});
  config.recompute = {.mode = deck::RecomputeMode::layernorm_gelu};
  config.model.sequence_parallel = true;
  expect_same_bits(as_llama(config, 1), {{.stage = 1, .accumulate = deck::Accumulate::local},
                                         {.stage = 2, .bucket = 509}});
}

INSTANTIATE_TEST_SUITE_P(Precisions, VerificationIn,
                         testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

class Verification : public testing::Test {
 protected:
  Verification() { fault = {}, computed = 0; }

  /// The message with which the steps up to `last` end. Empty if they succeed.
  std::string message(const deck::Config& config, Index last) {
    computed = 0;
    Training training(config, group, deck::GemmBackend::automatic, {.family = define_faulty});
    training.engine->initialise({});
    for (Index step = 0; step <= last; ++step) {
      const std::vector<float> before = training.state();
      try {
        training.step(step);
      } catch (const engine::Mismatch& mismatch) {
        EXPECT_EQ(step, last);
        EXPECT_EQ(mismatch.reason(), "verification");
        EXPECT_EQ(mismatch.code(), ExitCode::other);
        EXPECT_TRUE(same_bits(training.state(), before)) << "a wrong step changed the state";
        return mismatch.what();
      }
    }
    return "";
  }

  const grid::Group group = first_ranks(launch_ranks());
  const int ranks = launch_ranks();
  const std::string host = " on " + runtime::host_name();
};

void expect_texts(const std::string& message, const std::vector<std::string>& texts) {
  for (const std::string& text : texts)
    EXPECT_NE(message.find(text), std::string::npos) << text << " in: " << message;
}

// The steps match the plan. The second computation adds as many gathers and sums as the first.
TEST_F(Verification, HoldsAndSendsWhatIsPlanned) {
  constexpr Index steps = 4, verified = 2;
  for (const Index tensor : {1, 2}) {
    if (ranks % tensor != 0) continue;
    deck::Config config = verified_deck(Dtype::bf16, tensor);
    config.train.global_batch = 2 * ranks / tensor;  // a rank without a micro-batch sends less
    config.run.verify_every = 2;
    for (const deck::Zero& zero : stages()) {
      config.zero = zero;
      Training training(config, group);
      training.engine->initialise({});
      const auto at_start = training.traffic.outside();
      training.run(0, steps);
      expect_planned_bytes(training, words_of(zero));
      const engine::Blueprint& blueprint = training.engine->blueprint();
      const auto rows =
          engine::counted(training.traffic, engine::expected_traffic(training.config, blueprint));
      for (const metrics::TrafficRow& row : rows) {
        EXPECT_EQ(row.elements_per_step, row.expected_elements_per_step) << words_of(zero);
        Index outside = 0;
        for (const auto& [at, volume] : training.traffic.outside()) {
          const bool same = at.group == row.group && name_of(at.operation) == row.operation &&
                            name_of(at.purpose) == row.purpose;
          if (same) outside += volume.elements;
          if (same && at_start.contains(at)) outside -= at_start.at(at).elements;
        }
        const bool repeats = row.group == "tensor" ||
                             (zero.stage == 3 && row.purpose == name_of(comm::Purpose::parameters));
        EXPECT_EQ(outside, repeats ? verified * row.expected_elements_per_step : 0)
            << row.group << " " << row.operation << " " << row.purpose << ", " << words_of(zero);
      }
    }
  }
}

TEST_F(Verification, TakesMemoryForTheHashesOnly) {
  deck::Config config = verified_deck(Dtype::fp32);
  config = resolved(config, ranks);
  const auto with = engine::planned_bytes(config, engine::Blueprint(config, ranks), 1);
  config.run.verify_every = 0;
  const auto without = engine::planned_bytes(config, engine::Blueprint(config, ranks), 1);
  const engine::Blueprint blueprint(config, ranks);
  const Index words = 2 * blueprint.batches.rounds() * (std::ssize(blueprint.table) + 1);
  Index more = 0;
  for (std::size_t i = 0; i < with.size(); ++i) more += with[i] - without[i];
  EXPECT_GE(more, words * 8);
  EXPECT_LE(more, 2 * round_up(words * 8, 64)) << "on devices also pinned";
}

// The first and the last rank compute one micro-batch wrongly.
TEST_F(Verification, NamesARankThatErredOnce) {
  const deck::Config config = verified_deck(Dtype::fp32);
  for (const int rank : {0, ranks - 1}) {
    fault = {.rank = rank, .unit = 1};
    // The second micro-batch of the second step's second computation, which runs before the first.
    // In the first step the rank computed its own micro-batches and those of the rank before it.
    const Index own = 2 + (rank == 0 ? 1 : 0), others = 2 + (rank == 1 % ranks ? 1 : 0);
    const Index strike = own + others + 1;
    fault.strikes = [=](Index number) { return number == strike; };
    const std::string text = message(config, 1);
    expect_texts(text, {"run.verify_every: micro-batch ", " of step 1 (samples ",
                        "different results, first in the gradient of block 0.",
                        "ank " + std::to_string(rank) + host + " computed wrongly: ",
                        "The last step that agreed is 0."});
    EXPECT_EQ(text.find("more micro-batch"), std::string::npos) << text;
  }
}

// The rank computes its own micro-batches wrongly, and also those of other ranks.
TEST_F(Verification, NamesARankThatErrsAlways) {
  if (ranks == 1) return;  // repeats its error
  for (const deck::Zero& zero : stages()) {
    deck::Config config = verified_deck(Dtype::bf16);
    config.zero = zero;
    fault = {.rank = ranks - 1, .unit = 2};
    const std::string text = message(config, 0);
    if (ranks == 2) {
      expect_texts(text, {"ank 0" + host + " and rank 1" + host + " each repeat their result"});
    } else {
      expect_texts(text, {"ank " + std::to_string(ranks - 1) + host + " computed wrongly: rank ",
                          " have the same result"});
    }
    expect_texts(text, {"first in the gradient of block 1.", " more micro-batch"});
  }
}

TEST_F(Verification, NamesTheTensorRankWhoseGradientDiffers) {
  if (ranks < 2 || ranks % 2 != 0) return;
  const deck::Config config = verified_deck(Dtype::fp32, 2);
  fault = {.rank = ranks - 1, .unit = 2};
  fault.strikes = [](Index number) { return number == 1; };
  expect_texts(message(config, 0), {"first in the gradient of block 1. Rank " +
                                    std::to_string(ranks - 1) + host + " computed wrongly"});
}

// An error in forward reaches all tensor ranks with the next sum over them.
TEST_F(Verification, NamesTheTensorGroupWhoseLossDiffers) {
  const Index tensor = ranks % 2 == 0 ? 2 : 1;
  const deck::Config config = verified_deck(Dtype::fp32, tensor);
  fault = {.rank = 0, .place = Fault::Place::input};
  fault.strikes = [](Index number) { return number == 1; };
  expect_texts(message(config, 0),
               {"different results, first in its loss. ",
                tensor == 2 ? "One of rank 0" + host + ", rank 1" + host + " computed wrongly"
                            : "Rank 0" + host + " computed wrongly"});
}

TEST_F(Verification, LooksAtEveryKthStepOnly) {
  deck::Config config = verified_deck(Dtype::fp32);
  config.run.verify_every = 3;
  fault = {.rank = 0, .unit = 1};
  fault.strikes = [](Index number) { return number == 0; };  // of step 0
  EXPECT_EQ(message(config, 1), "");
  fault.strikes = [](Index number) { return number == 6; };  // the first of step 2
  expect_texts(message(config, 2), {"of step 2 (samples ", "micro-batch"});
}

}  // namespace
}  // namespace kzero::tests
