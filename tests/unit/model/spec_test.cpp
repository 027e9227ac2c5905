#include "model/transformer_definition.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "model/context.hpp"
#include "param/flat_layout.hpp"

namespace kzero::model {
namespace {

deck::Model gpt2_124m() {
  deck::Model m;
  m.layers = 12, m.hidden = 768, m.heads = 12, m.sequence = 1024, m.vocab = 50257;
  return m;
}

TEST(ParameterTable, CountsTheParametersOfGpt2) {
  deck::Model m = gpt2_124m();
  EXPECT_EQ(param::elements_of(parameter_table(m)), 124439808);
  m.tied_embeddings = false;
  EXPECT_EQ(param::elements_of(parameter_table(m)), 124439808 + 50257 * 768);
  m = gpt2_124m();
  m.layers = 48, m.hidden = 1600, m.heads = 25;
  EXPECT_EQ(param::elements_of(parameter_table(m)), 1557611200) << "GPT-2 XL";
}

// Of a short sequence, the positions after a tied table are fewer rows than the head's GEMMs read.
TEST(ParameterTable, HasRoomAfterTheOutputProjectionForWhatItsProductsRead) {
  for (const auto family : {deck::ModelFamily::gpt2, deck::ModelFamily::llama}) {
    for (const bool is_tied : {true, false}) {
      for (const Index sequence : {1, 64}) {
        deck::Model m;
        m.family = family, m.tied_embeddings = is_tied, m.sequence = sequence;
        m.layers = 2, m.hidden = 60, m.heads = 3, m.vocab = 81;
        for (const TensorRank& rank : {TensorRank{}, TensorRank{0, 3}, TensorRank{2, 3}}) {
          const TransformerShape shape(m, rank);
          const param::FlatLayout layout(parameter_table(m, rank), 2);
          const Index begin = is_tied ? 0 : shape.norm_elements();
          EXPECT_LE(begin + shape.own.vocab * shape.hidden + read_after_output(shape),
                    layout.unit(is_tied ? 0 : m.layers + 1).padded);
        }
      }
    }
  }
}

TEST(ParameterTable, UnitsAreEmbeddingBlocksAndHeadWithNamesOfTheirOwn) {
  const param::Table table = parameter_table(gpt2_124m());
  ASSERT_EQ(table.size(), 14U);
  EXPECT_EQ(table.front().params.size(), 2U);
  EXPECT_EQ(table[1].params.size(), 12U);
  EXPECT_EQ(table.back().params.size(), 2U);
  std::set<std::string> names;
  for (const auto& unit : table) {
    for (const auto& p : unit.params) EXPECT_TRUE(names.insert(p.name).second) << p.name;
  }
  for (const char* name :
       {"wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.11.mlp.c_proj.bias", "ln_f.bias"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(ParameterTable, MatricesDecayAndStartNormalVectorsDoNeither) {
  const deck::Model m = gpt2_124m();
  for (const auto& unit : parameter_table(m)) {
    for (const auto& p : unit.params) {
      const bool is_matrix = p.shape.size() > 1;
      EXPECT_EQ(p.decays, is_matrix) << p.name;
      const bool is_norm_weight = !is_matrix && p.name.ends_with("weight");
      const param::Init init = is_matrix        ? param::Init::normal
                               : is_norm_weight ? param::Init::ones
                                                : param::Init::zeros;
      EXPECT_EQ(p.init, init) << p.name;
      const bool is_residual = p.name.ends_with("c_proj.weight");
      const double std = is_residual ? m.init_std / std::sqrt(24.0) : m.init_std;
      EXPECT_DOUBLE_EQ(p.std, is_matrix ? std : 0) << p.name;
    }
  }
}

// Hidden matrices map between hidden vectors, whatever their shape. Embeddings and the head are not
// hidden matrices.
TEST(ParameterTable, SaysWhichParametersStoreHiddenMatrices) {
  deck::Model gpt2 = gpt2_124m(), llama = gpt2_124m();
  gpt2.tied_embeddings = false;
  llama.family = deck::ModelFamily::llama;
  llama.kv_heads = 4, llama.feed_forward = 2048, llama.tied_embeddings = false;
  llama.qkv_bias = llama.qk_norm = true;
  for (const deck::Model& m : {gpt2, llama}) {
    for (const Index tensor : {1, 2}) {
      const param::Table table = parameter_table(m, {0, tensor});
      for (const auto& unit : table) {
        for (const auto& p : unit.params) {
          const bool is_block = &unit != &table.front() && &unit != &table.back();
          const bool is_fused = p.name.ends_with("c_attn.weight");
          EXPECT_EQ(p.matrices, is_block && p.shape.size() == 2 ? is_fused ? 3 : 1 : 0) << p.name;
          if (!p.is_matrix()) continue;
          EXPECT_EQ(p.matrix_rows() * p.matrix_columns() * p.matrices, p.elements());
          if (is_fused) {
            EXPECT_EQ(p.matrix_columns(), m.hidden);
          }
        }
      }
    }
  }
}

// Kaplan et al., arXiv 2001.08361, table 1, forward and backward. Causal attention needs half of
// the full matrix.
TEST(ParameterTable, FlopsAreSixAParameterInProductsAndCausalAttention) {
  const double blocks = 12.0 * 12 * 768 * 768, output = 768.0 * 50257,
               attention = 6.0 * 12 * 1024 * 768;
  EXPECT_DOUBLE_EQ(flops_per_token(TransformerDefinition(gpt2_124m(), {}).training_trace()),
                   6 * (blocks + output) + attention);
}

// Frozen: 4 a parameter, and 6 a parameter of the adapters. Backward ends at the first block's
// first adapter, whose input's gradient is not computed.
TEST(ParameterTable, FlopsOfAdaptersAreThoseThatAreComputed) {
  const deck::Model m = gpt2_124m();
  const double block = 12.0 * 768 * 768, output = 768.0 * 50257, attention = 1024.0 * 768;
  const auto flops = [&](const std::string& target) {
    const deck::Lora lora{.rank = 8, .alpha = 16, .targets = {target}};
    return flops_per_token(TransformerDefinition(m, {}, {}, lora).training_trace());
  };
  const double all = 4 * (12 * block + output) + 6 * 12 * attention;
  const double qkv = 3.0 * 768 * 768;
  EXPECT_DOUBLE_EQ(flops("c_attn"), all + 6 * 12 * 8 * (768.0 + 2304) - 2 * (qkv + 8 * 768));
  const double above = qkv + block / 12 + 2 * attention + block / 3;
  EXPECT_DOUBLE_EQ(flops("c_fc"), all + 6 * 12 * 8 * (768.0 + 3072) - 2 * (above + 8 * 768));
}

TEST(ParameterTable, AdaptersAreUnitsThatTrainAfterTheFrozenOnes) {
  const param::Table plain = parameter_table(gpt2_124m());
  const param::Table table =
      parameter_table(gpt2_124m(), {}, {.rank = 8, .alpha = 16, .targets = {"c_proj"}});
  ASSERT_EQ(plain.size(), 14U);
  ASSERT_EQ(table.size(), 26U);
  for (std::size_t u = 0; u < table.size(); ++u) {
    EXPECT_EQ(table[u].trains, u >= 14);
    if (u >= 14) continue;
    EXPECT_EQ(table[u].elements(), plain[u].elements());
  }
  const param::UnitSpec& last = table.back();
  ASSERT_EQ(last.params.size(), 4U);
  EXPECT_EQ(last.params[0].name, "h.11.attn.c_proj.lora_A.weight");
  EXPECT_EQ(last.params[0].shape, (std::vector<Index>{8, 768}));
  EXPECT_EQ(last.params[0].init, param::Init::uniform);
  EXPECT_DOUBLE_EQ(last.params[0].std, 1 / std::sqrt(768.0));
  EXPECT_EQ(last.params[3].name, "h.11.mlp.c_proj.lora_B.weight");
  EXPECT_EQ(last.params[3].shape, (std::vector<Index>{768, 8}));
  EXPECT_EQ(last.params[3].init, param::Init::zeros);
}

/// A rank of a tensor group draws its part of the same initial weights.
void expect_same_draws_on_tensor_ranks(const deck::Model& m, const deck::Lora& lora) {
  const param::Table one = parameter_table(m, {}, lora);
  for (const Index ranks : {2, 4}) {
    for (Index rank = 0; rank < ranks; ++rank) {
      const param::Table own = parameter_table(m, {rank, ranks}, lora);
      ASSERT_EQ(own.size(), one.size());
      for (std::size_t u = 0; u < one.size(); ++u) {
        ASSERT_EQ(own[u].params.size(), one[u].params.size());
        for (std::size_t i = 0; i < one[u].params.size(); ++i) {
          const param::ParamSpec &found = own[u].params[i], &expected = one[u].params[i];
          EXPECT_EQ(found.name, expected.name);
          EXPECT_EQ(found.shape, expected.shape) << found.name;
          EXPECT_EQ(found.init, expected.init) << found.name;
          EXPECT_EQ(found.std, expected.std) << found.name;
          EXPECT_EQ(found.decays, expected.decays) << found.name;
        }
      }
    }
  }
}

TEST(ParameterTable, TensorRanksDrawPartsOfTheSameWeights) {
  expect_same_draws_on_tensor_ranks(gpt2_124m(), {});
  expect_same_draws_on_tensor_ranks(
      gpt2_124m(), {.rank = 8, .alpha = 16, .targets = {"c_attn", "c_proj", "c_fc"}});
}

}  // namespace
}  // namespace kzero::model
