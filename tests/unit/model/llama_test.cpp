// Known properties of published Llama-family models: parameters, names and arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "deck/model_rules.hpp"
#include "model/shape.hpp"
#include "model/transformer_definition.hpp"

namespace kzero::model {
namespace {

deck::Model llama(Index hidden, Index layers, Index heads, Index kv_heads, Index feed_forward,
                  Index vocab, bool tied) {
  deck::Model m;
  m.family = deck::ModelFamily::llama;
  m.hidden = hidden, m.layers = layers, m.heads = heads, m.kv_heads = kv_heads;
  m.feed_forward = feed_forward, m.vocab = vocab, m.tied_embeddings = tied;
  m.sequence = 1024;
  EXPECT_TRUE(deck::apply_model_rules(m).empty());
  return m;
}

deck::Model qwen3_06b() {
  deck::Model m = llama(1024, 28, 16, 8, 3072, 151936, true);
  m.head_dim = 128, m.qk_norm = true;
  return m;
}

TEST(Llama, HasTheParametersOfPublishedModels) {
  const auto count = [](const deck::Model& m) { return param::elements_of(parameter_table(m)); };
  EXPECT_EQ(count(llama(2048, 16, 32, 8, 8192, 128256, true)), 1235814400) << "Llama-3.2-1B";
  EXPECT_EQ(count(llama(4096, 32, 32, 8, 14336, 128256, false)), 8030261248) << "Llama-3.1-8B";
  EXPECT_EQ(count(llama(2048, 22, 32, 4, 5632, 32000, false)), 1100048384) << "TinyLlama-1.1B";
  EXPECT_EQ(count(qwen3_06b()), 596049920) << "Qwen3-0.6B";
  deck::Model qwen2 = llama(896, 24, 14, 2, 4864, 151936, true);
  qwen2.qkv_bias = true;
  EXPECT_EQ(count(qwen2), 494032768) << "Qwen2.5-0.5B";
}

// Feed-forward widths of Llama 2: 8/3 of the width, rounded up to a multiple of 256.
TEST(Llama, ChoosesMetasFeedForwardWidth) {
  EXPECT_EQ(llama(4096, 1, 32, 32, 0, 32000, false).feed_forward, 11008);
  EXPECT_EQ(llama(5120, 1, 40, 40, 0, 32000, false).feed_forward, 13824);
}

/// Elements by parameter name.
std::map<std::string, Index> held(const deck::Model& m, const TensorRank& tensor) {
  std::map<std::string, Index> all;
  for (const param::UnitSpec& unit : parameter_table(m, tensor)) {
    for (const param::ParamSpec& p : unit.params) all[p.name] = p.held();
  }
  return all;
}

TEST(Llama, TensorRanksShareOrCopyHeadsOfKeysAndValues) {
  const deck::Model m = qwen3_06b();  // 8 KV heads
  const std::string k = "model.layers.3.self_attn.k_proj.weight",
                    q = "model.layers.3.self_attn.q_proj.weight",
                    o = "model.layers.3.self_attn.o_proj.weight";
  EXPECT_EQ(held(m, {0, 1}).at(k), 8 * 128 * 1024);
  EXPECT_EQ(held(m, {1, 4}).at(k), 2 * 128 * 1024);
  EXPECT_EQ(held(m, {5, 16}).at(k), 128 * 1024) << "two ranks each have a head";
  EXPECT_EQ(held(m, {5, 16}).at(q), 128 * 1024);
  EXPECT_EQ(held(m, {5, 16}).at(o), 128 * 1024);
  Index owned = 0;
  for (Index rank = 0; rank < 16; ++rank) {
    for (const param::UnitSpec& unit : parameter_table(m, {rank, 16})) {
      for (const param::ParamSpec& p : unit.params) {
        if (p.split.is_owned_by(rank)) owned += p.held();
      }
    }
  }
  EXPECT_EQ(owned, param::elements_of(parameter_table(m))) << "each element has one owner";
}

TEST(Llama, FlopsAreSixAParameterInProductsAndCausalAttention) {
  const double blocks = 28.0 * (1024 * (16 + 2 * 8) * 128 + 16 * 128 * 1024 + 3 * 1024 * 3072);
  const double head = 151936.0 * 1024, attention = 6.0 * 28 * 1024 * 16 * 128;
  EXPECT_DOUBLE_EQ(flops_per_token(TransformerDefinition(qwen3_06b(), {}).training_trace()),
                   6 * (blocks + head) + attention);
}

TEST(Llama, MatricesThatWriteToTheResidualStreamMayStartSmaller) {
  for (const auto init : {deck::Initialization::scaled, deck::Initialization::normal}) {
    deck::Model m = qwen3_06b();
    m.init = init;
    for (const param::UnitSpec& unit : parameter_table(m)) {
      for (const param::ParamSpec& p : unit.params) {
        if (p.shape.size() < 2) continue;
        const bool is_residual =
            p.name.ends_with("o_proj.weight") || p.name.ends_with("down_proj.weight");
        const bool is_scaled = is_residual && init == deck::Initialization::scaled;
        EXPECT_DOUBLE_EQ(p.std, is_scaled ? 0.02 / std::sqrt(56.0) : 0.02) << p.name;
      }
    }
  }
}

}  // namespace
}  // namespace kzero::model
