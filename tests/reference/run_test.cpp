// Whole runs of the reference cases on any number of ranks that divides their batch: loss, gradient
// norm and learning rate of every step, and the final weights.
#include <gtest/gtest.h>

#include "convert/gpt2.hpp"
#include "reference/reference_case.hpp"

namespace kzero::tests {
namespace {

enum class Micro { whole_share, one_sequence };

/// A case, its engine with the case's first weights, and the results of all its steps.
struct CaseRun {
  CaseRun(const std::string& name, Dtype precision, Micro micro)
      : reference(name), group(first_ranks(launch_ranks())) {
    deck::Config config = reference.config();
    config.train.precision = precision;
    config.train.micro_batch = micro == Micro::one_sequence ? 1 : 0;
    training = std::make_unique<Training>(config, group);
    const convert::Gpt2Weights weights(config.model.initial, training->engine->table());
    training->engine->initialise(
        [&](const param::ParamSpec& p, const checkpoint::Range& range, std::span<float> values) {
          weights.load_range(p.name, range, values);
        });
    results = training->run(0, config.train.steps);
  }

  ReferenceCase reference;
  grid::Group group;
  std::unique_ptr<Training> training;
  std::vector<train::StepResult> results;
};

class ReferenceRun : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Index batch = ReferenceCase(GetParam()).config().train.global_batch;
    if (batch % launch_ranks() != 0)
      GTEST_SKIP() << batch << " sequences do not divide among " << launch_ranks() << " ranks";
  }
};

void expect_fp32_run(const CaseRun& run) {
  const auto loss = run.reference.numbers("loss"), norm = run.reference.numbers("grad_norm"),
             lr = run.reference.numbers("lr");
  ASSERT_EQ(run.results.size(), loss.size());
  for (std::size_t s = 0; s < loss.size(); ++s) {
    EXPECT_NEAR(run.results[s].loss, loss[s], 1e-5 * loss[s]) << "step " << s;
    EXPECT_NEAR(run.results[s].grad_norm, norm[s], 1e-5 * norm[s]) << "step " << s;
    EXPECT_NEAR(run.results[s].lr, lr[s], 1e-12 * lr[s]) << "step " << s;
    EXPECT_FALSE(run.results[s].skipped);
  }
  Index parameters = 0;
  for (const checkpoint::Piece& piece : run.training->engine->needed_pieces()) {
    const auto expected = run.reference.numbers("final/" + piece.parameter);
    ASSERT_EQ(piece.master.size(), expected.size()) << piece.parameter;
    EXPECT_LE(relative_distance(piece.master, expected), 1e-5) << piece.parameter;
    parameters += static_cast<Index>(expected.size());
  }
  EXPECT_EQ(parameters, param::elements_of(run.training->engine->table()));
}

TEST_P(ReferenceRun, Fp32AgreesWithFloat64) {
  expect_fp32_run(CaseRun(GetParam(), Dtype::fp32, Micro::whole_share));
}

TEST_P(ReferenceRun, Fp32AccumulatingSingleSequencesAgreesWithFloat64) {
  expect_fp32_run(CaseRun(GetParam(), Dtype::fp32, Micro::one_sequence));
}

/// How far a 16-bit run may be from exact arithmetic, by the format's unit round-off u and the
/// depth of the model.
///
/// A value that is stored in the format is off by a factor of at most 1 +- u, in the root mean
/// square u / sqrt(3). On its way from tokens to logits a number is stored 8 times a block (two
/// LayerNorms, qkv, attention, the stream after attention, the hidden layer before and after GELU,
/// the stream after it) and meets 4 stored weights there; embedding and head add 4: K = 12 L + 4.
/// Independent roundings add up as squares, and neither LayerNorm nor the residual sums amplify
/// them in the norm, so the vector before the logits is off by e = sqrt(K / 3) u of its norm.
/// Backward repeats the way in reverse, with values that are off themselves: 2 K roundings more, so
/// a gradient is off by sqrt(3 K / 3) u.
///
/// That vector has norm sqrt(D) (LayerNorm with weights near 1), so a logit is off by e |w|, w its
/// row of the output matrix, and a loss, as the difference of one logit and a mean of logits, by
/// sqrt(2) e |w|. An AdamW update is lr times a number of size 1 whose error is twice the
/// gradient's relative error at most; weighted with the gradient g it changes later losses by 2 lr
/// e' |g| a step. All as standard deviations; six of them are allowed, without taking into account
/// that a loss is a mean over many tokens.
struct Tolerance {
  double norm;
  double first_loss;
  double loss_per_rate;  // for each unit of learning rate spent before the step

  Tolerance(const ReferenceCase& reference, double u) {
    const deck::Config config = reference.config();
    const double stored = 12.0 * static_cast<double>(config.model.layers) + 4;
    const auto table = reference.numbers("final/wte.weight");
    const auto width = static_cast<std::size_t>(config.model.hidden);
    double longest = 0;
    for (std::size_t row = 0; row < table.size(); row += width) {
      double squares = 0;
      for (std::size_t i = row; i < row + width; ++i) squares += table[i] * table[i];
      longest = std::max(longest, std::sqrt(squares));
    }
    double largest_norm = 0;
    for (const double norm_of_step : reference.numbers("grad_norm"))
      largest_norm = std::max(largest_norm, norm_of_step);
    norm = 6 * std::sqrt(stored) * u;
    first_loss = 6 * std::sqrt(2 * stored / 3) * u * longest;
    loss_per_rate = 6 * 2 * std::sqrt(stored) * u * largest_norm;
  }
};

void expect_16_bit_run(const CaseRun& run, double round_off) {
  const Tolerance tolerance(run.reference, round_off);
  const auto loss = run.reference.numbers("loss"), norm = run.reference.numbers("grad_norm"),
             lr = run.reference.numbers("lr");
  ASSERT_EQ(run.results.size(), loss.size());
  double spent = 0;
  for (std::size_t s = 0; s < loss.size(); ++s) {
    EXPECT_NEAR(run.results[s].loss, loss[s],
                tolerance.first_loss + tolerance.loss_per_rate * spent)
        << "step " << s;
    EXPECT_NEAR(run.results[s].lr, lr[s], 1e-12 * lr[s]) << "step " << s;
    EXPECT_FALSE(run.results[s].skipped) << "step " << s;
    spent += lr[s];
  }
  EXPECT_NEAR(run.results[0].grad_norm, norm[0], tolerance.norm * norm[0]);
}

TEST_P(ReferenceRun, Bf16StaysWithinItsRounding) {
  expect_16_bit_run(CaseRun(GetParam(), Dtype::bf16, Micro::whole_share), 0x1p-8);
}

TEST_P(ReferenceRun, Bf16AccumulatingStaysWithinItsRounding) {
  expect_16_bit_run(CaseRun(GetParam(), Dtype::bf16, Micro::one_sequence), 0x1p-8);
}

TEST_P(ReferenceRun, Fp16StaysWithinItsRounding) {
  expect_16_bit_run(CaseRun(GetParam(), Dtype::fp16, Micro::whole_share), 0x1p-11);
}

TEST_P(ReferenceRun, Fp16AccumulatingStaysWithinItsRounding) {
  expect_16_bit_run(CaseRun(GetParam(), Dtype::fp16, Micro::one_sequence), 0x1p-11);
}

INSTANTIATE_TEST_SUITE_P(Cases, ReferenceRun, testing::Values("even", "odd"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace kzero::tests
