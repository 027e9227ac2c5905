#include "convert/expert_config.hpp"

#include <fmt/format.h>

namespace kzero::convert {

namespace {

using Json = nlohmann::json;

// Qwen3-MoE has the first name in transformers 4 and the second in 5, which reads both. The other
// classes have one of the two.
constexpr const char *count_key = "num_experts", *local_count_key = "num_local_experts";
constexpr const char* chosen_key = "num_experts_per_tok";

/// Layers without experts, and what changes queries, keys and values.
void refuse_others(ConfigKeys& keys) {
  constexpr const char* in_every_layer = "kzero has experts in every layer or in none";
  keys.require("mlp_only_layers", Json::array(), {Json::array(), nullptr}, in_every_layer);
  keys.require("decoder_sparse_step", 1, {1}, in_every_layer);
  keys.require("clip_qkv", nullptr, {nullptr}, "kzero does not clip queries, keys and values");
}

/// The shared expert, and the choice by biased sigmoids.
void read_shared_expert(ConfigKeys& keys, const ModelClass& type) {
  if (!type.has("model.shared_feed_forward")) return;
  if (type.experts.shared > 0) {
    keys.imply(
        {"model.shared_feed_forward", {"shared_expert_intermediate_size"}, type.experts.shared});
    keys.require("qkv_bias", true, {true}, "kzero has biases of queries, keys and values there");
    return;
  }
  const Json number = keys.has("n_shared_experts") ? keys.at("n_shared_experts") : Json(1);
  const char* const width_key = type.experts.width_key;
  const Json width = keys.has(width_key) ? keys.at(width_key) : Json(type.feed_forward);
  if (!number.is_number_integer() || number < 1 || number > 1000)
    return keys.refuse("n_shared_experts", "it must be an integer above 0");
  if (width.is_number_integer() && width > 0 && width <= 1000000)
    keys.imply("model.shared_feed_forward", number.get<Index>() * width.get<Index>(),
               keys.describe("n_shared_experts"));
}

/// What the routers of GLM-4.5 have, and kzero does only for these values.
void read_biased_choice(ConfigKeys& keys, const ModelClass& type) {
  if (!type.has("model.router_bias")) return;
  keys.imply("model.router_score", std::string(name_of(deck::RouterScore::sigmoid)),
             fmt::format("model_type is \"{}\"", type.type));
  keys.require("use_qk_norm", false, {true}, "kzero norms queries and keys in this class");
  keys.require("routed_scaling_factor", 1, {1}, "kzero does not scale gates");
  for (const char* key : {"n_group", "topk_group"})
    keys.require(key, 1, {1}, "kzero has no groups of experts");
  keys.require("first_k_dense_replace", 1, {0}, "kzero has experts in every layer or in none");
  const Json& rotation = keys.at("rope_parameters");
  const bool is_inside = rotation.is_object() && rotation.contains("partial_rotary_factor");
  if (!is_inside) keys.require("partial_rotary_factor", 0.5, {1}, "kzero turns the entire head");
}

}  // namespace

void read_experts(ConfigKeys& keys, const ModelClass& type) {
  if (type.experts.count == 0) return;
  const char* const own = type.experts.count_key;
  const Index experts = keys.imply_count(
      {"model.experts", {own == nullptr ? count_key : own, local_count_key}, type.experts.count});
  const Index chosen =
      keys.imply_count({"model.experts_per_token", {chosen_key}, type.experts.per_token});
  if (experts > 0 && chosen > experts)
    keys.refuse(chosen_key, fmt::format("there are {} experts to choose from", experts));
  if (type.has("model.normalized_gates"))
    keys.imply({"model.normalized_gates", {"norm_topk_prob"}, type.has("model.router_bias")});
  read_shared_expert(keys, type);
  read_biased_choice(keys, type);
  if (!type.has("model.router_bias"))
    keys.imply({.deck = "model.router_aux_loss",
                .names = {"router_aux_loss_coef"},
                .default_value = type.experts.aux_loss,
                .is_binding = false});
  refuse_others(keys);
}

namespace {

void write_biased_choice(const deck::Model& model, nlohmann::ordered_json& config) {
  config["n_shared_experts"] = model.shared_feed_forward / model.feed_forward;
  config["use_qk_norm"] = true;
  config["routed_scaling_factor"] = 1.0;
  config["n_group"] = config["topk_group"] = 1;
  config["first_k_dense_replace"] = 0;
  config["num_nextn_predict_layers"] = 0;
  config["partial_rotary_factor"] = 1.0;
}

}  // namespace

void write_experts(const deck::Model& model, const ModelClass& type,
                   nlohmann::ordered_json& config) {
  if (type.experts.count == 0) return;
  if (type.experts.count_key != nullptr) {
    config[type.experts.count_key] = model.experts;
  } else {
    for (const char* key : {count_key, local_count_key}) config[key] = model.experts;
  }
  config[chosen_key] = model.experts_per_token;
  config[type.experts.width_key] = model.feed_forward;
  if (type.has("model.normalized_gates")) config["norm_topk_prob"] = model.normalized_gates;
  config["output_router_logits"] = false;
  if (type.has("model.router_bias")) return write_biased_choice(model, config);
  config["router_aux_loss_coef"] = model.router_aux_loss;
  if (type.experts.shared > 0) {
    config["shared_expert_intermediate_size"] = model.shared_feed_forward;
    config["qkv_bias"] = true;
  }
  if (type.family == deck::ModelFamily::llama) {
    config["mlp_only_layers"] = Json::array();
    config["decoder_sparse_step"] = 1;
  }
  if (type.family == deck::ModelFamily::olmoe) config["clip_qkv"] = nullptr;
  if (type.family == deck::ModelFamily::mixtral) config["router_jitter_noise"] = 0.0;
}

}  // namespace kzero::convert
