// The families of the deck: the parts of their blocks and the names of their parameters, as their
// Hugging Face files have them. A family is data: no other file of this folder asks for it.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "model/shape.hpp"

namespace kzero::model {

/// The names of parameters outside the linear layers, which deck/linear_layers.hpp names. Norms
/// have a weight and perhaps a bias.
struct ParameterNames {
  std::string_view tokens, positions;     // embeddings; empty if positions are rotary
  std::string_view blocks;                // block i's names begin with it and i
  std::string_view norm1, norm2;          // in a block
  std::string_view query_norm, key_norm;  // in a block; empty if the family has none
  std::string_view final_norm, output;
};

struct TransformerFamily {
  deck::ModelFamily family;
  TransformerParts parts;
  ParameterNames names;
};

inline constexpr TransformerFamily transformer_families[] = {
    {deck::ModelFamily::gpt2,
     {.norm = NormKind::layer_norm,
      .positions = PositionKind::learned,
      .activation = ActivationKind::gelu,
      .biases = true,
      .weight_layout = WeightLayout::in_out,
      .drops_embedding = true},
     {.tokens = "wte.weight",
      .positions = "wpe.weight",
      .blocks = "h.",
      .norm1 = "ln_1",
      .norm2 = "ln_2",
      .query_norm = "",
      .key_norm = "",
      .final_norm = "ln_f",
      .output = "lm_head.weight"}},
    {deck::ModelFamily::llama,
     {.norm = NormKind::rms_norm,
      .positions = PositionKind::rotary,
      .activation = ActivationKind::swiglu,
      .biases = false,
      .weight_layout = WeightLayout::out_in,
      .drops_embedding = false},
     {.tokens = "model.embed_tokens.weight",
      .positions = "",
      .blocks = "model.layers.",
      .norm1 = "input_layernorm",
      .norm2 = "post_attention_layernorm",
      .query_norm = "self_attn.q_norm",
      .key_norm = "self_attn.k_norm",
      .final_norm = "model.norm",
      .output = "lm_head.weight"}},
};

/// Returns the family's entry. Throws Error(other) if the table has none, which is a mistake in the
/// program.
inline const TransformerFamily& family_of(deck::ModelFamily family) {
  for (const TransformerFamily& known : transformer_families) {
    if (known.family == family) return known;
  }
  fail(ExitCode::other, "internal error: the transformer has no family {}",
       static_cast<int>(family));
}

}  // namespace kzero::model
