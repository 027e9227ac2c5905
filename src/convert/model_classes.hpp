// The classes of transformers whose models kzero computes, except GPT-2's: what differs between
// them, as data. Source: configuration_*.py of transformers 5, and of 4.57 where both differ.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "deck/config.hpp"

namespace kzero::convert {

/// Which layers of a class have a window.
enum class Windows {
  none,
  all,           // `sliding_window`, unless it is null
  by_layer,      // `layer_types` lists them
  switched_off,  // kzero reads use_sliding_window = false only
};

/// The experts of a class. Every layer has them.
struct ClassExperts {
  Index count = 0, per_token = 0;                   // defaults; 0: the class has no experts
  double aux_loss = 0.001;                          // likewise
  const char* width_key = "moe_intermediate_size";  // of each expert
  const char* count_key = nullptr;  // of the experts; null: two names, see expert_config.cpp
  Index shared = 0;  // width of the shared expert; 0: a multiple of an expert's, or none
};

struct ModelClass {
  const char* type;       // model_type
  const char* with_head;  // the class with the output projection, and the class without it
  const char* alone;
  deck::ModelFamily family;
  /// Keys of special_keys that its files may set. They have their defaults in all other classes.
  std::array<std::string_view, 7> keys{};
  /// Defaults of missing keys of config.json. A count of 0 is derived from other keys.
  Index layers = 32, hidden = 4096, heads = 32, kv_heads = 0, head_dim = 0, feed_forward = 11008,
        sequence = 2048, vocab = 32000;
  Index window = 4096;  // with Windows::all; 0: none
  double norm_eps = 1e-6, rope_theta = 10000;
  bool tied = false;
  Windows windows = Windows::none;
  Index full_attention_every = 0;     // by_layer: without layer_types
  const char* pattern_key = nullptr;  // an older key for full_attention_every
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  bool has_attention_bias = true;  // has these keys, which must be false
  bool has_mlp_bias = false;
  bool needs_rope = false;       // transformers 4 and 5 differ if the file has no rotary positions
  bool has_rope_scaling = true;  // in transformers 4 and 5
  bool needs_whole_heads = false;  // refuses a hidden_size that is not a multiple of the heads
  bool has_head_dim = true;        // in transformers 4 and 5; false: hidden_size / heads
  ClassExperts experts{};

  bool has(std::string_view deck_key) const;
};

/// The deck keys that only some classes can set.
inline constexpr const char* special_keys[] = {"model.qkv_bias",
                                               "model.qk_norm",
                                               "model.window",
                                               "model.full_attention_every",
                                               "model.window_rope_theta",
                                               "model.no_rope_every",
                                               "model.attention_scale",
                                               "model.embedding_scale",
                                               "model.residual_scale",
                                               "model.logit_divisor",
                                               "model.experts",
                                               "model.experts_per_token",
                                               "model.normalized_gates",
                                               "model.shared_feed_forward",
                                               "model.shared_gate",
                                               "model.router_score",
                                               "model.router_bias"};

/// All classes. If a model can be several of them, the first one is written.
std::span<const ModelClass> model_classes();

/// The class that an export of the model has. Throws Error(files) if no class computes the model;
/// the error tells which deck keys each class lacks or needs. `checkpoint` is for the message.
const ModelClass& class_of(const deck::Model& model, const std::string& checkpoint);

/// What people should know if no class computes the model of a deck, so that kzero cannot export
/// what a training makes of it; else empty.
std::string export_note(const deck::Model& model);

/// query_pre_attn_scalar of Gemma 3, whose power of -1/2 is model.attention_scale. 0 if no integer
/// has that power.
Index query_scalar(const deck::Model& model);

}  // namespace kzero::convert
