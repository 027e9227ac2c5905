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

}  // namespace

void read_experts(ConfigKeys& keys, const ModelClass& type) {
  if (type.experts.count == 0) return;
  const Index experts =
      keys.imply_count({"model.experts", {count_key, local_count_key}, type.experts.count});
  const Index chosen =
      keys.imply_count({"model.experts_per_token", {chosen_key}, type.experts.per_token});
  if (experts > 0 && chosen > experts)
    keys.refuse(chosen_key, fmt::format("there are {} experts to choose from", experts));
  if (type.has("model.normalized_gates"))
    keys.imply({"model.normalized_gates", {"norm_topk_prob"}, false});
  keys.imply({.deck = "model.router_aux_loss",
              .names = {"router_aux_loss_coef"},
              .default_value = type.experts.aux_loss,
              .is_binding = false});
  refuse_others(keys);
}

void write_experts(const deck::Model& model, const ModelClass& type,
                   nlohmann::ordered_json& config) {
  if (type.experts.count == 0) return;
  for (const char* key : {count_key, local_count_key}) config[key] = model.experts;
  config[chosen_key] = model.experts_per_token;
  config[type.experts.width_key] = model.feed_forward;
  if (type.has("model.normalized_gates")) config["norm_topk_prob"] = model.normalized_gates;
  config["router_aux_loss_coef"] = model.router_aux_loss;
  config["output_router_logits"] = false;
  if (type.family == deck::ModelFamily::llama) {
    config["mlp_only_layers"] = Json::array();
    config["decoder_sparse_step"] = 1;
  }
  if (type.family == deck::ModelFamily::olmoe) config["clip_qkv"] = nullptr;
  if (type.family == deck::ModelFamily::mixtral) config["router_jitter_noise"] = 0.0;
}

}  // namespace kzero::convert
