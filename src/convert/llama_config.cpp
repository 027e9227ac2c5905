#include "convert/llama_config.hpp"

#include <string_view>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "convert/rope_config.hpp"

namespace kzero::convert {

namespace {

using Json = nlohmann::json;

/// The differences between the classes. A count of 0 is derived from other keys.
struct ModelClass {
  const char* type;
  const char* name;
  Index vocab, hidden, feed_forward, kv_heads, head_dim, sequence;
  bool qkv_bias, qk_norm;
};

constexpr ModelClass classes[] = {
    {"llama", "LlamaForCausalLM", 32000, 4096, 11008, 0, 0, 2048, false, false},
    {"mistral", "MistralForCausalLM", 32000, 4096, 14336, 8, 0, 131072, false, false},
    {"qwen2", "Qwen2ForCausalLM", 151936, 4096, 22016, 32, 0, 32768, true, false},
    {"qwen3", "Qwen3ForCausalLM", 151936, 4096, 22016, 32, 128, 32768, false, true}};

const ModelClass& class_of(std::string_view type) {
  for (const ModelClass& one : classes)
    if (type == one.type) return one;
  fail(ExitCode::other, "internal error: no class for model_type {}", printable(type));
}

void read_shape(ConfigKeys& keys, const ModelClass& type) {
  keys.imply({"model.layers", {"num_hidden_layers"}, 32});
  const Index hidden = keys.imply_count({"model.hidden", {"hidden_size"}, type.hidden});
  const Index heads = keys.imply_count({"model.heads", {"num_attention_heads"}, 32});
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
  keys.imply({.deck = "model.sequence",
              .names = {"max_position_embeddings"},
              .default_value = type.sequence,
              .is_binding = false});
  keys.imply({.deck = "model.vocab",
              .names = {"vocab_size"},
              .default_value = type.vocab,
              .may_grow = true});
  keys.imply({"model.feed_forward", {"intermediate_size"}, type.feed_forward});
}

/// Reads which tokens a token sees. Mistral has a window in every layer, and of 4096 if the key is
/// missing. Windows in some layers only, and those of Qwen, are refused.
void read_windows(ConfigKeys& keys, const ModelClass& type) {
  const bool is_mistral = type.type == std::string("mistral");
  const std::string origin = fmt::format("model_type is \"{}\"", type.type);
  keys.imply("model.full_attention_every", Index{0}, origin);
  const bool is_null = keys.has("sliding_window") && keys.at("sliding_window").is_null();
  if (is_mistral && !is_null) {
    keys.imply({"model.window", {"sliding_window"}, 4096});
  } else {
    keys.imply("model.window", Index{0}, origin);
  }
  if (!is_mistral && type.type != std::string("llama"))
    keys.require("use_sliding_window", false, {false},
                 "kzero computes attention over all positions before a token");
  const Json& layers = keys.at("layer_types");
  if (layers.is_null()) return;
  bool is_full = layers.is_array();
  for (const Json& layer : layers) is_full = is_full && layer == "full_attention";
  if (!is_full) keys.refuse("layer_types", "kzero reads \"full_attention\" in every layer");
}

}  // namespace

void read_llama(ConfigKeys keys, const std::string& model_type) {
  const ModelClass& type = class_of(model_type);
  read_shape(keys, type);
  const auto implied = [&](const char* deck_key, bool value) {
    keys.imply(deck_key, value, fmt::format("model_type is \"{}\"", type.type));
  };
  implied("model.qkv_bias", type.qkv_bias);
  implied("model.qk_norm", type.qk_norm);
  keys.imply({"model.tied_embeddings", {"tie_word_embeddings"}, false});
  keys.imply({"model.norm_eps", {"rms_norm_eps"}, 1e-6});
  read_rope(keys);
  keys.imply({.deck = "model.init_std",
              .names = {"initializer_range"},
              .default_value = 0.02,
              .is_binding = false});
  keys.require("hidden_act", "silu", {"silu"}, "kzero computes silu");
  if (!type.qkv_bias) {
    keys.require("attention_bias", false, {false},
                 "kzero has no bias after attention, and only qwen2 has biases of queries, keys "
                 "and values");
  }
  keys.require("mlp_bias", false, {false}, "kzero has no biases in the feed-forward part");
  read_windows(keys, type);
}

nlohmann::ordered_json llama_config(const deck::Model& model, const std::string& checkpoint) {
  KZERO_REQUIRE(!model.qkv_bias || !model.qk_norm, ExitCode::files,
                "{}: no class of transformers computes model.qkv_bias = true with model.qk_norm = "
                "true: Qwen2 has the biases, Qwen3 the norms",
                printable(checkpoint));
  const bool has_window = model.window > 0;
  KZERO_REQUIRE(
      !has_window || (!model.qkv_bias && !model.qk_norm && model.full_attention_every == 0),
      ExitCode::files,
      "{}: of the classes of transformers that kzero writes, only Mistral has "
      "model.window, in every layer, without model.qkv_bias and model.qk_norm",
      printable(checkpoint));
  // LlamaConfig refuses a width that is not a multiple of the number of heads. Mistral without a
  // window computes the same function.
  const bool is_mistral = has_window || model.hidden % model.heads != 0;
  const char* of_width = is_mistral ? "mistral" : "llama";
  const ModelClass& type = class_of(model.qkv_bias ? "qwen2" : model.qk_norm ? "qwen3" : of_width);
  nlohmann::ordered_json config{{"architectures", {type.name}},
                                {"model_type", type.type},
                                {"hidden_act", "silu"},
                                {"num_hidden_layers", model.layers},
                                {"hidden_size", model.hidden},
                                {"num_attention_heads", model.heads},
                                {"num_key_value_heads", model.kv_heads},
                                {"head_dim", model.head_dim},
                                {"intermediate_size", model.feed_forward},
                                {"max_position_embeddings", model.sequence},
                                {"vocab_size", model.vocab},
                                {"rms_norm_eps", model.norm_eps},
                                {"tie_word_embeddings", model.tied_embeddings},
                                {"attention_dropout", 0.0}};
  if (!type.qkv_bias && type.type != std::string("mistral")) config["attention_bias"] = false;
  if (type.type == std::string("llama")) {
    config["mlp_bias"] = false;
  } else {
    config["sliding_window"] = has_window ? nlohmann::ordered_json(model.window) : nullptr;
  }
  if (type.qkv_bias || type.qk_norm) config["use_sliding_window"] = false;
  write_rope(model, config);
  return config;
}

}  // namespace kzero::convert
