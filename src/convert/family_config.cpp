#include "convert/family_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convert/expert_config.hpp"
#include "convert/layer_pattern.hpp"
#include "convert/rope_config.hpp"
#include "deck/architecture.hpp"

namespace kzero::convert {

namespace {

using Json = nlohmann::json;

/// Returns the number of layers; 0 after a problem.
Index read_shape(ConfigKeys& keys, const ModelClass& type) {
  const Index layers = keys.imply_count({"model.layers", {"num_hidden_layers"}, type.layers});
  const Index hidden = keys.imply_count({"model.hidden", {"hidden_size"}, type.hidden});
  const Index heads = keys.imply_count({"model.heads", {"num_attention_heads"}, type.heads});
  if (heads > 0) {
    // In every class, null means the number of all heads.
    const bool is_null =
        keys.at("num_key_value_heads").is_null() && keys.has("num_key_value_heads");
    const Index default_value = is_null || type.kv_heads == 0 ? heads : type.kv_heads;
    keys.imply({"model.kv_heads", {"num_key_value_heads"}, default_value, true});
  }
  const Index head_dim = type.head_dim > 0 ? type.head_dim : heads > 0 ? hidden / heads : 0;
  if (hidden > 0 && heads > 0)
    keys.imply({"model.head_dim", {"head_dim"}, head_dim, type.head_dim == 0});
  if (!type.has_head_dim && !keys.at("head_dim").is_null() && keys.at("head_dim") != head_dim)
    keys.refuse("head_dim", "transformers 4 computes hidden_size / num_attention_heads");
  keys.imply({.deck = "model.sequence",
              .names = {"max_position_embeddings"},
              .default_value = type.sequence,
              .is_binding = false});
  keys.imply({.deck = "model.vocab",
              .names = {"vocab_size"},
              .default_value = type.vocab,
              .may_grow = true});
  const bool has_experts = type.experts.count > 0;
  keys.imply({"model.feed_forward",
              {has_experts ? type.experts.width_key : "intermediate_size"},
              type.feed_forward});
  return layers;
}

/// Sets the keys that the family has and the class does not, and those that follow from the class.
void imply_by_type(ConfigKeys& keys, const ModelClass& type) {
  const std::string origin = fmt::format("model_type is \"{}\"", type.type);
  for (const char* path : special_keys) {
    const deck::Key& key = *deck::find_key(path);
    if (!deck::has_use(key, name_of(type.family))) continue;
    const deck::Value usual = deck::model_value(key, deck::Model());
    const bool follows = usual == deck::Value(false);  // a class that has the flag always sets it
    if (follows) {
      keys.imply(path, type.has(path), origin);
    } else if (!type.has(path)) {
      keys.imply(path, usual, origin);
    }
  }
}

/// The four factors of Granite. A 0 would have another meaning in a deck.
void read_factors(ConfigKeys& keys) {
  constexpr std::pair<const char*, const char*> factors[] = {
      {"model.attention_scale", "attention_multiplier"},
      {"model.embedding_scale", "embedding_multiplier"},
      {"model.residual_scale", "residual_multiplier"},
      {"model.logit_divisor", "logits_scaling"}};
  for (const auto& [path, key] : factors) {
    if (keys.at(key) == 0) {
      keys.refuse(key, "it must be above 0");
    } else {
      keys.imply({path, {key}, 1.0});
    }
  }
}

/// Gemma 3's scale of attention.
void read_query_scalar(ConfigKeys& keys, const ModelClass& type) {
  constexpr const char* key = "query_pre_attn_scalar";
  const Json scalar = keys.has(key) ? keys.at(key) : Json(256);
  if (!scalar.is_number() || scalar <= 0) return keys.refuse(key, "it must be a number above 0");
  const Json head_dim = keys.has("head_dim") ? keys.at("head_dim") : Json(type.head_dim);
  const double scale = scalar == head_dim ? 0 : std::pow(scalar.get<double>(), -0.5);
  keys.imply("model.attention_scale", scale, keys.describe(key));
}

/// Keys of Gemma 3 that kzero does not compute.
void refuse_of_gemma(ConfigKeys& keys) {
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    keys.require(key, nullptr, {nullptr}, "kzero does not cap scores or logits");
  keys.require("use_bidirectional_attention", false, {false, nullptr},
               "in kzero a token sees only tokens before it");
}

/// The width of a feed-forward part without experts. Qwen3-MoE has the key but no such layer; its
/// models write the width that computes a token.
Index dense_width(const deck::Model& model) {
  return model.feed_forward * std::max<Index>(1, model.experts_per_token);
}

}  // namespace

void read_family(ConfigKeys keys, const ModelClass& type) {
  const Index layers = read_shape(keys, type);
  imply_by_type(keys, type);
  keys.imply({"model.tied_embeddings", {"tie_word_embeddings"}, type.tied});
  keys.imply({"model.norm_eps", {"rms_norm_eps"}, type.norm_eps});
  LayerKinds kinds;
  if (layers > 0) kinds = read_windows(keys, type, layers);
  read_rope(keys, type, kinds);
  if (layers > 0 && type.has("model.no_rope_every")) read_layers_without_rope(keys, layers);
  if (type.has("model.residual_scale")) read_factors(keys);
  read_experts(keys, type);
  if (type.family == deck::ModelFamily::gemma3) {
    read_query_scalar(keys, type);
    refuse_of_gemma(keys);
  }
  keys.imply({.deck = "model.init_std",
              .names = {"initializer_range"},
              .default_value = 0.02,
              .is_binding = false});
  keys.require(type.activation_key, type.activation, {type.activation},
               fmt::format("kzero computes {}", type.activation));
  if (!type.has("model.qkv_bias")) {
    keys.require("attention_bias", false, {false},
                 "kzero has no bias after attention, and only qwen2 has biases of queries, keys "
                 "and values");
  }
  keys.require("mlp_bias", false, {false}, "kzero has no biases in the feed-forward part");
}

nlohmann::ordered_json family_config(const deck::Model& model, const std::string& checkpoint) {
  const ModelClass& type = class_of(model, checkpoint);
  nlohmann::ordered_json config{{"architectures", {type.with_head}},
                                {"model_type", type.type},
                                {type.activation_key, type.activation},
                                {"num_hidden_layers", model.layers},
                                {"hidden_size", model.hidden},
                                {"num_attention_heads", model.heads},
                                {"num_key_value_heads", model.kv_heads},
                                {"head_dim", model.head_dim},
                                {"intermediate_size", dense_width(model)},
                                {"max_position_embeddings", model.sequence},
                                {"vocab_size", model.vocab},
                                {"rms_norm_eps", model.norm_eps},
                                {"tie_word_embeddings", model.tied_embeddings},
                                {"attention_dropout", 0.0}};
  if (type.has_attention_bias) config["attention_bias"] = false;
  if (type.has_mlp_bias) config["mlp_bias"] = false;
  write_windows(model, type, config);
  if (type.has("model.no_rope_every")) write_layers_without_rope(model, config);
  if (type.has("model.residual_scale")) {
    const double default_scale = 1 / std::sqrt(static_cast<double>(model.head_dim));
    config["attention_multiplier"] =
        model.attention_scale == 0 ? default_scale : model.attention_scale;
    config["embedding_multiplier"] = model.embedding_scale == 0 ? 1.0 : model.embedding_scale;
    config["residual_multiplier"] = model.residual_scale;
    config["logits_scaling"] = model.logit_divisor;
  }
  if (type.family == deck::ModelFamily::gemma3) {
    config["query_pre_attn_scalar"] = query_scalar(model);
    for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
      config[key] = nullptr;
    config["use_bidirectional_attention"] = false;
  }
  write_experts(model, type, config);
  write_rope(model, type, config);
  return config;
}

}  // namespace kzero::convert
