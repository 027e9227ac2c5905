#include "convert/gpt2_config.hpp"

namespace kzero::convert {

namespace {

using Json = nlohmann::json;

constexpr Index gpt2_vocab = 50257;

}  // namespace

void read_gpt2(ConfigKeys keys) {
  keys.imply({"model.layers", {"n_layer", "num_hidden_layers"}, 12});
  const Index hidden = keys.imply_count({"model.hidden", {"n_embd", "hidden_size"}, 768});
  keys.imply({"model.heads", {"n_head", "num_attention_heads"}, 12});
  keys.imply({"model.sequence", {"n_positions", "max_position_embeddings"}, 1024});
  keys.imply({.deck = "model.vocab",
              .names = {"vocab_size"},
              .default_value = gpt2_vocab,
              .may_grow = true});
  if (hidden > 0) keys.imply({"model.feed_forward", {"n_inner"}, 4 * hidden, /*is_nullable=*/true});
  keys.imply({"model.norm_eps", {"layer_norm_epsilon"}, 1e-5});
  keys.imply({"model.tied_embeddings", {"tie_word_embeddings"}, true});
  keys.imply({.deck = "model.init_std",
              .names = {"initializer_range"},
              .default_value = 0.02,
              .is_binding = false});
  // Three names for the one function in kernels/gelu.hpp.
  keys.require("activation_function", "gelu_new", {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"},
               "kzero computes gelu_new, gelu_pytorch_tanh, gelu_fast");
  keys.require("scale_attn_weights", true, {true},
               "kzero always divides by the root of the head size");
  keys.require("scale_attn_by_inverse_layer_idx", false, {false},
               "kzero scales attention alike in all layers");
  keys.require("add_cross_attention", false, {false}, "kzero has no cross-attention");
}

nlohmann::ordered_json gpt2_config(const deck::Model& model) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"activation_function", "gelu_new"},
          {"n_layer", model.layers},
          {"n_embd", model.hidden},
          {"n_head", model.heads},
          {"n_positions", model.sequence},
          {"n_ctx", model.sequence},
          {"n_inner", model.feed_forward},
          {"vocab_size", model.vocab},
          {"layer_norm_epsilon", model.norm_eps},
          {"tie_word_embeddings", model.tied_embeddings},
          {"scale_attn_weights", true},
          {"scale_attn_by_inverse_layer_idx", false},
          {"attn_pdrop", 0.0},
          {"embd_pdrop", 0.0},
          {"resid_pdrop", 0.0}};
}

Json gpt2_end_of_text(const deck::Model& model) {
  return model.vocab == gpt2_vocab ? Json(gpt2_vocab - 1) : Json(nullptr);
}

}  // namespace kzero::convert
