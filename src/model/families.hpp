// The families of the deck: the parts of their blocks and the names of their parameters, as their
// Hugging Face files have them. A family is data: no other file of this folder asks for it.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "model/shape.hpp"

namespace kzero::model {

/// The names of a half's norms: of its input, and of what it adds to the residual stream. Empty if
/// the family does not norm there.
struct HalfNormNames {
  std::string_view input, output{};
};

/// The names of parameters outside the linear layers, which deck/linear_layers.hpp names. Norms
/// have a weight and perhaps a bias.
struct ParameterNames {
  std::string_view tokens, positions;  // embeddings; empty if positions are rotary
  std::string_view blocks;             // block i's names begin with it and i
  HalfNormNames attention, feed_forward;
  std::string_view query_norm, key_norm;                // in a block; empty if the family has none
  std::string_view positive_scale{}, negative_scale{};  // in a block, of xIELU
  std::string_view router{};                            // in a block with experts
  std::string_view final_norm, output;
};

struct TransformerFamily {
  deck::ModelFamily family;
  TransformerParts parts;
  ParameterNames names;
};

/// What the families after GPT-2 share.
inline constexpr TransformerParts llama_parts{.norm = NormKind::rms_norm,
                                              .positions = PositionKind::rotary,
                                              .activation = ActivationKind::swiglu,
                                              .biases = false,
                                              .weight_layout = WeightLayout::out_in,
                                              .drops_embedding = false};

inline constexpr ParameterNames llama_names{.tokens = "model.embed_tokens.weight",
                                            .positions = "",
                                            .blocks = "model.layers.",
                                            .attention = {"input_layernorm"},
                                            .feed_forward = {"post_attention_layernorm"},
                                            .query_norm = "self_attn.q_norm",
                                            .key_norm = "self_attn.k_norm",
                                            .router = "mlp.gate",
                                            .final_norm = "model.norm",
                                            .output = "lm_head.weight"};

/// OLMo 2 (arXiv 2501.00656): RMSNorm of what a half adds, and over all heads of q and of k.
constexpr TransformerFamily olmo2_family() {
  TransformerFamily f{deck::ModelFamily::olmo2, llama_parts, llama_names};
  f.parts.qk_norm = QkNorm::all_heads;
  f.names.attention = {"", "post_attention_layernorm"};
  f.names.feed_forward = {"", "post_feedforward_layernorm"};
  return f;
}

/// Gemma 3 (arXiv 2503.19786).
constexpr TransformerFamily gemma3_family() {
  TransformerFamily f{deck::ModelFamily::gemma3, llama_parts, llama_names};
  f.parts.activation = ActivationKind::geglu;
  f.parts.qk_norm = QkNorm::each_head;
  f.parts.norm_offset = 1;
  f.parts.scales_embedding = true;
  f.names.attention = {"input_layernorm", "post_attention_layernorm"};
  f.names.feed_forward = {"pre_feedforward_layernorm", "post_feedforward_layernorm"};
  return f;
}

/// Apertus (arXiv 2509.14233).
constexpr TransformerFamily apertus_family() {
  TransformerFamily f{deck::ModelFamily::apertus, llama_parts, llama_names};
  f.parts.activation = ActivationKind::xielu;
  f.parts.qk_norm = QkNorm::each_head;
  f.names.attention = {"attention_layernorm"};
  f.names.feed_forward = {"feedforward_layernorm"};
  f.names.positive_scale = "mlp.act_fn.alpha_p";
  f.names.negative_scale = "mlp.act_fn.alpha_n";
  return f;
}

/// OLMoE (arXiv 2409.02060).
constexpr TransformerFamily olmoe_family() {
  TransformerFamily f{deck::ModelFamily::olmoe, llama_parts, llama_names};
  f.parts.qk_norm = QkNorm::all_heads;
  return f;
}

/// Mixtral (arXiv 2401.04088).
constexpr TransformerFamily mixtral_family() {
  TransformerFamily f{deck::ModelFamily::mixtral, llama_parts, llama_names};
  f.names.router = "block_sparse_moe.gate";
  return f;
}

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
      .attention = {"ln_1"},
      .feed_forward = {"ln_2"},
      .query_norm = "",
      .key_norm = "",
      .final_norm = "ln_f",
      .output = "lm_head.weight"}},
    {deck::ModelFamily::llama, llama_parts, llama_names},
    olmo2_family(),
    gemma3_family(),
    apertus_family(),
    olmoe_family(),
    mixtral_family()};

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
