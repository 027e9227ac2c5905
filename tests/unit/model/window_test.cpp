// Windows of attention: what a token sees, exactly, and the work that it saves.
#include <gtest/gtest.h>

#include "driven_model.hpp"
#include "packed_samples.hpp"
#include "support/launches.hpp"
#include "support/same_bits.hpp"

namespace kzero::tests {
namespace {

constexpr Index sequence = 150, vocab = 101, window = 33;

deck::Model one_layer(Index of_window) {
  deck::Model m;
  m.family = deck::ModelFamily::llama;
  m.layers = 1, m.hidden = 16, m.heads = 2, m.kv_heads = 1, m.head_dim = 8;
  m.sequence = sequence, m.vocab = vocab, m.feed_forward = 31, m.window = of_window;
  m.tied_embeddings = false;
  return m;
}

/// One sequence of tokens, all of them targets. `changed` is replaced by another token; -1: none.
PackedSamples text(Index changed = -1) {
  PlacedDocument all{{}, {}, 0, 0};
  for (const double x : numbers<float>(sequence, 3))
    all.tokens.push_back(static_cast<Token>(std::abs(x) * vocab));
  if (changed >= 0) {
    Token& token = all.tokens[static_cast<std::size_t>(changed)];
    token = (token + 50) % vocab;
  }
  all.flags.assign(sequence, 1);
  return PackedSamples(1, sequence, {all});
}

template <class T>
std::vector<float> losses(const deck::Model& m, const PackedSamples& samples) {
  DrivenModel<T> model(m, 1);
  model.set_numbers();
  return model.token_losses(samples, 0);
}

template <class T>
class Windows : public testing::Test {};
using WindowTypes = testing::Types<float, bf16>;
TYPED_TEST_SUITE(Windows, WindowTypes, );

// A token is the target of the row before it, and rows after the window do not see it.
TYPED_TEST(Windows, HideWhatIsBeforeThemExactly) {
  const auto before = losses<TypeParam>(one_layer(window), text());
  for (const Index changed : {0, 40, 64, 100}) {
    const auto after = losses<TypeParam>(one_layer(window), text(changed));
    ASSERT_EQ(after.size(), before.size());
    for (Index row = 0; row < sequence; ++row) {
      const bool may_change = row >= changed - 1 && row < changed + window;
      if (!may_change) {
        EXPECT_EQ(after[row], before[row]) << "row " << row << " after token " << changed;
      }
    }
    EXPECT_NE(after[changed + window - 1], before[changed + window - 1]) << "the last that sees it";
  }
}

TYPED_TEST(Windows, AsLongAsTheSequenceHaveTheBitsOfNone) {
  const auto none = losses<TypeParam>(one_layer(0), text());
  EXPECT_TRUE(same_bits(losses<TypeParam>(one_layer(sequence), text()), none));
  EXPECT_FALSE(same_bits(losses<TypeParam>(one_layer(sequence - 2), text()), none));
}

// All layers with a window share it, and so do all passes of a micro-batch.
TEST(WindowRows, AreFilledOnceAMicroBatch) {
  deck::Model m = one_layer(window);
  m.layers = 3;
  for (const Index full_attention_every : {0, 2}) {
    m.full_attention_every = full_attention_every;
    DrivenModel<float> model(m, 1, {.mode = deck::RecomputeMode::full});
    model.set_numbers();
    const PackedSamples samples = text();
    const Launches launches("kzero::kernels::window_of");
    model.loss_and_gradients(samples, 0, 1, tensor::Accumulate::no);
    EXPECT_EQ(launches.count(), 1);
    model.token_losses(samples, 0);
    EXPECT_EQ(launches.count(), 2);
  }
}

// Layers run one after another, with and without a window.
TEST(WindowMemory, OfScratchIsThatOfTheLayersThatNeedMost) {
  const auto workspace = [](deck::Model m) {
    return DrivenModel<float>(m, 1).bytes(memory::Category::workspace);
  };
  deck::Model some = one_layer(window);
  some.layers = 2;
  deck::Model all = some, none = some;
  some.full_attention_every = 2, none.window = 0;
  EXPECT_EQ(workspace(some), std::max(workspace(all), workspace(none)));
}

// Of three layers, one has no window.
TEST(WindowWork, IsThatOfTheKeysInTheWindow) {
  deck::Model m = one_layer(0);
  m.layers = 3;
  const double all = model::flops_per_token(model::TransformerDefinition(m, {}).training_trace());
  m.window = window, m.full_attention_every = 3;
  double keys = 0, in_window = 0;
  for (Index q = 0; q < sequence; ++q) {
    keys += static_cast<double>(q) + 0.5;  // the diagonal counts half, as in causal attention
    in_window += std::min(static_cast<double>(q) + 0.5, static_cast<double>(window));
  }
  const double saved = 12 * (keys - in_window) / sequence * 16 * 2;
  const double found =
      all - model::flops_per_token(model::TransformerDefinition(m, {}).training_trace());
  EXPECT_NEAR(found, saved, 0.01 * saved);
}

}  // namespace
}  // namespace kzero::tests
