#include "model/rotary.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace kzero::model {
namespace {

using deck::RopeScaling;

/// Heads of 16 columns.
deck::Model llama(RopeScaling scaling) {
  deck::Model m;
  m.family = deck::ModelFamily::llama;
  m.hidden = 64, m.heads = 4, m.sequence = 50;
  m.rope_scaling = scaling;
  return m;
}

void expect_frequencies(const deck::Model& model, const std::vector<double>& expected) {
  const auto found = rotary_frequencies(model);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-6 * expected[i]) << "pair " << i;
}

// The numbers come from ROPE_INIT_FUNCTIONS of transformers 5, which computes them in fp32.
TEST(RotaryFrequencies, AreThoseOfTransformers) {
  deck::Model linear = llama(RopeScaling::linear);
  linear.rope_factor = 4;
  expect_frequencies(linear, {0.25, 0.079056941, 0.0250000004, 0.00790569466, 0.00249999994,
                              0.000790569466, 0.000250000012, 7.90569466e-05});
  deck::Model llama3 = llama(RopeScaling::llama3);
  llama3.rope_factor = 8, llama3.rope_original_sequence = 64;
  expect_frequencies(llama3, {1.0, 0.244384587, 0.0130422562, 0.00395284733, 0.00124999997,
                              0.000395284733, 0.000125000006, 3.95284733e-05});
  deck::Model yarn = llama(RopeScaling::yarn);
  yarn.rope_factor = 4, yarn.rope_original_sequence = 1024;
  expect_frequencies(yarn, {1.0, 0.316227764, 0.0812500045, 0.0197642371, 0.00437500002,
                            0.000790569466, 0.000250000012, 7.90569466e-05});
  yarn.rope_theta = 500000, yarn.rope_factor = 8, yarn.rope_original_sequence = 512;
  yarn.rope_beta_fast = 16, yarn.rope_beta_slow = 2;
  expect_frequencies(yarn, {1.0, 0.137361944, 0.0156691782, 0.000911583134, 0.000176776681,
                            3.42810235e-05, 6.64786967e-06, 1.28917316e-06});
}

// If the ramp has length zero, transformers uses 0.001.
TEST(RotaryFrequencies, AreFiniteWhateverTheRamp) {
  deck::Model yarn = llama(RopeScaling::yarn);
  yarn.rope_factor = 4;
  for (const Index original : {1, 2, 7, 1000000}) {
    yarn.rope_original_sequence = original;
    for (const double f : rotary_frequencies(yarn)) EXPECT_TRUE(f > 0 && f <= 1) << original;
  }
}

TEST(RotaryTable, HasCosinesThenSinesOfEveryPosition) {
  deck::Model m = llama(RopeScaling::none);
  m.head_dim = 6, m.rope_theta = 100;
  const auto table = rotary_table(m);
  ASSERT_EQ(table.size(), 50U * 6);
  for (Index position : {0, 1, 13, 49}) {
    for (Index pair = 0; pair < 3; ++pair) {
      const double angle =
          static_cast<double>(position) * std::pow(100, -static_cast<double>(pair) / 3);
      EXPECT_FLOAT_EQ(table[position * 6 + pair], static_cast<float>(std::cos(angle)));
      EXPECT_FLOAT_EQ(table[position * 6 + 3 + pair], static_cast<float>(std::sin(angle)));
    }
  }
}

TEST(RotaryTable, HasYarnsFactor) {
  deck::Model m = llama(RopeScaling::yarn);
  m.rope_factor = 4, m.rope_original_sequence = 1024;
  EXPECT_FLOAT_EQ(rotary_table(m).front(), 1.138629436F);
  m.rope_attention_factor = 1.25;
  EXPECT_FLOAT_EQ(rotary_table(m).front(), 1.25F);
}

}  // namespace
}  // namespace kzero::model
