// Mixtures of experts in config.json: what keys and missing keys mean, what is refused, and which
// class computes a model.
#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "convert/config_export.hpp"
#include "unit/convert/configs.hpp"

namespace kzero::convert {

namespace {

using nlohmann::json;

json written_as(const deck::Model& model) {
  return json::parse(config_text(model, Dtype::fp32, {}, "step"));
}

const char* const sparse_types[] = {"qwen3_moe", "olmoe", "mixtral"};

TEST(ExpertConfig, MissingKeysMeanWhatEachClassTakesThemToMean) {
  const std::map<std::string, std::map<std::string, deck::Value>> all{
      {"qwen3_moe",
       {{"model.family", std::string("llama")},
        {"model.layers", Index{24}},
        {"model.hidden", Index{2048}},
        {"model.heads", Index{32}},
        {"model.kv_heads", Index{4}},
        {"model.head_dim", Index{64}},
        {"model.sequence", Index{32768}},
        {"model.vocab", Index{151936}},
        {"model.feed_forward", Index{768}},
        {"model.qkv_bias", false},
        {"model.qk_norm", true},
        {"model.window", Index{0}},
        {"model.norm_eps", 1e-6},
        {"model.rope_theta", 1e4},
        {"model.experts", Index{128}},
        {"model.experts_per_token", Index{8}},
        {"model.normalized_gates", false},
        {"model.router_aux_loss", 0.001}}},
      {"qwen2_moe",
       {{"model.family", std::string("llama")},
        {"model.layers", Index{24}},
        {"model.heads", Index{16}},
        {"model.kv_heads", Index{16}},
        {"model.head_dim", Index{128}},
        {"model.feed_forward", Index{1408}},
        {"model.qkv_bias", true},
        {"model.qk_norm", false},
        {"model.experts", Index{60}},
        {"model.experts_per_token", Index{4}},
        {"model.normalized_gates", false},
        {"model.shared_feed_forward", Index{5632}},
        {"model.shared_gate", true},
        {"model.router_score", std::string("softmax")},
        {"model.router_bias", false},
        {"model.router_aux_loss", 0.001}}},
      {"olmoe",
       {{"model.family", std::string("olmoe")},
        {"model.layers", Index{16}},
        {"model.hidden", Index{2048}},
        {"model.heads", Index{16}},
        {"model.kv_heads", Index{16}},
        {"model.head_dim", Index{128}},
        {"model.sequence", Index{4096}},
        {"model.vocab", Index{50304}},
        {"model.feed_forward", Index{2048}},
        {"model.window", Index{0}},
        {"model.norm_eps", 1e-5},
        {"model.rope_theta", 1e4},
        {"model.experts", Index{64}},
        {"model.experts_per_token", Index{8}},
        {"model.normalized_gates", false},
        {"model.router_aux_loss", 0.01}}},
      {"mixtral",
       {{"model.family", std::string("mixtral")},
        {"model.layers", Index{32}},
        {"model.hidden", Index{4096}},
        {"model.heads", Index{32}},
        {"model.kv_heads", Index{8}},
        {"model.head_dim", Index{128}},
        {"model.sequence", Index{131072}},
        {"model.vocab", Index{32000}},
        {"model.feed_forward", Index{14336}},
        {"model.window", Index{0}},
        {"model.norm_eps", 1e-5},
        {"model.rope_theta", 1e6},
        {"model.experts", Index{8}},
        {"model.experts_per_token", Index{2}},
        {"model.normalized_gates", true},
        {"model.router_aux_loss", 0.001}}}};
  for (const auto& [type, expected] : all) {
    const auto found = values_of(of_type(type));
    for (const auto& [path, value] : expected) {
      ASSERT_TRUE(found.contains(path)) << type << " " << path;
      EXPECT_EQ(found.at(path), value) << type << " " << path;
    }
  }
  const auto dense = values_of(of_type("qwen3"));
  EXPECT_EQ(dense.at("model.experts"), deck::Value(Index{0}));
  EXPECT_EQ(dense.at("model.normalized_gates"), deck::Value(true));
  EXPECT_FALSE(dense.contains("model.router_aux_loss"));
}

TEST(ExpertConfig, KeysOfBothGenerationsAreRead) {
  for (const char* type : sparse_types) {
    for (const char* key : {"num_experts", "num_local_experts"}) {
      json config = of_type(type);
      config.update({{key, 12}, {"num_experts_per_tok", 3}, {"norm_topk_prob", true}});
      config.update({{"moe_intermediate_size", 40}, {"intermediate_size", 88}});
      const auto found = values_of(config);
      EXPECT_EQ(found.at("model.experts"), deck::Value(Index{12})) << type << key;
      EXPECT_EQ(found.at("model.experts_per_token"), deck::Value(Index{3})) << type;
      EXPECT_EQ(found.at("model.normalized_gates"), deck::Value(true)) << type;
      const Index width = type == std::string("qwen3_moe") ? 40 : 88;
      EXPECT_EQ(found.at("model.feed_forward"), deck::Value(width)) << type;
    }
  }
  json config = of_type("mixtral");
  config.update({{"sliding_window", 7}, {"norm_topk_prob", false}});  // Mixtral has no such key
  EXPECT_EQ(values_of(config).at("model.window"), deck::Value(Index{7}));
  EXPECT_EQ(values_of(config).at("model.normalized_gates"), deck::Value(true));
}

/// A config.json of GLM-4.5's class that kzero computes.
json glm_config() {
  json config = of_type("glm4_moe");
  config.update({{"use_qk_norm", true},
                 {"first_k_dense_replace", 0},
                 {"partial_rotary_factor", 1.0},
                 {"hidden_size", 48},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},
                 {"n_routed_experts", 6},
                 {"num_experts_per_tok", 3},
                 {"moe_intermediate_size", 40},
                 {"n_shared_experts", 2}});
  return config;
}

TEST(ExpertConfig, GlmHasBiasesSigmoidsAndASharedExpert) {
  const auto found = values_of(glm_config());
  EXPECT_EQ(found.at("model.experts"), deck::Value(Index{6}));
  EXPECT_EQ(found.at("model.feed_forward"), deck::Value(Index{40}));
  EXPECT_EQ(found.at("model.shared_feed_forward"), deck::Value(Index{80}));
  EXPECT_EQ(found.at("model.shared_gate"), deck::Value(false));
  EXPECT_EQ(found.at("model.router_score"), deck::Value(std::string("sigmoid")));
  EXPECT_EQ(found.at("model.router_bias"), deck::Value(true));
  EXPECT_EQ(found.at("model.normalized_gates"), deck::Value(true));
  EXPECT_EQ(found.at("model.qk_norm"), deck::Value(true));
  const json out = written_as(model_of(glm_config()));
  EXPECT_EQ(out.at("architectures"), json::array({"Glm4MoeForCausalLM"}));
  const json expected{{"n_routed_experts", 6},
                      {"num_experts_per_tok", 3},
                      {"n_shared_experts", 2},
                      {"moe_intermediate_size", 40},
                      {"first_k_dense_replace", 0},
                      {"partial_rotary_factor", 1.0},
                      {"use_qk_norm", true},
                      {"routed_scaling_factor", 1.0},
                      {"n_group", 1},
                      {"topk_group", 1},
                      {"norm_topk_prob", true}};
  for (const auto& [key, value] : expected.items()) EXPECT_EQ(out.at(key), value) << key;
  EXPECT_EQ(values_of(out), found);
}

TEST(ExpertConfig, OfGlmOthersAreRefusedByName) {
  const std::tuple<json, const char*> cases[] = {
      {{{"first_k_dense_replace", 1}},
       "first_k_dense_replace is 1; kzero has experts in every layer or in none"},
      {{{"partial_rotary_factor", 0.5}}, "partial_rotary_factor is 0.5; kzero turns the entire"},
      {{{"n_group", 2}}, "n_group is 2; kzero has no groups of experts"},
      {{{"topk_group", 2}}, "topk_group is 2; kzero has no groups of experts"},
      {{{"routed_scaling_factor", 2.5}}, "routed_scaling_factor is 2.5; kzero does not scale"},
      {{{"use_qk_norm", false}}, "use_qk_norm is false; kzero norms queries and keys in this"},
      {{{"n_shared_experts", 0}}, "n_shared_experts is 0; it must be an integer above 0"}};
  for (const auto& [changes, expected] : cases) {
    json config = glm_config();
    config.update(changes);
    const std::string text = refusal_of(config);
    EXPECT_TRUE(contains(text, std::string("\n  ") + expected)) << expected << "\n" << text;
  }
  json config = glm_config();
  config.erase("partial_rotary_factor");
  EXPECT_TRUE(contains(refusal_of(config), "partial_rotary_factor"));
  config["rope_parameters"] = {{"rope_type", "default"}, {"partial_rotary_factor", 1.0}};
  EXPECT_EQ(values_of(config).at("model.experts"), deck::Value(Index{6}));
}

// It is a setting of training: another value in the deck, or in a run's, is no contradiction.
TEST(ExpertConfig, TheLossThatBalancesIsADefaultOfTheDeck) {
  json config = of_type("olmoe");
  config["router_aux_loss_coef"] = 0.02;
  for (const deck::ImpliedValue& one : implied_by(config)) {
    if (one.path != "model.router_aux_loss") continue;
    EXPECT_EQ(one.value, deck::Value(0.02));
    EXPECT_EQ(one.origin, "hf/config.json: router_aux_loss_coef is 0.02");
    EXPECT_FALSE(one.is_binding);
  }
  deck::Model model = model_of(config);
  EXPECT_EQ(model.router_aux_loss, 0.02);
  model.router_aux_loss = 0.5;
  EXPECT_TRUE(differences({"config.json", config.dump()}, model).empty());
  EXPECT_EQ(written_as(model).at("router_aux_loss_coef"), 0.5);
}

TEST(ExpertConfig, WhatKzeroDoesNotComputeIsRefusedByName) {
  const std::tuple<const char*, json, const char*> cases[] = {
      {"qwen3_moe",
       {{"mlp_only_layers", {0}}},
       "mlp_only_layers is [0]; kzero has experts in every layer or in none"},
      {"qwen3_moe",
       {{"decoder_sparse_step", 2}},
       "decoder_sparse_step is 2; kzero has experts in every layer or in none"},
      {"qwen3_moe", {{"num_experts", 0}}, "num_experts is 0; it must be above 0"},
      {"qwen3_moe",
       {{"num_experts", 4}, {"num_experts_per_tok", 5}},
       "num_experts_per_tok is 5; there are 4 experts to choose from"},
      {"qwen3_moe",
       {{"num_experts", 16}, {"num_local_experts", 32}},
       "num_local_experts is 32; it means the same as num_experts, which is 16"},
      {"qwen3_moe",
       {{"norm_topk_prob", nullptr}},
       "norm_topk_prob is null; model.normalized_gates must be"},
      {"qwen3_moe",
       {{"router_aux_loss_coef", -1}},
       "router_aux_loss_coef is -1; model.router_aux_loss must be"},
      {"qwen3_moe", {{"moe_intermediate_size", 0}}, "moe_intermediate_size is 0; it must be above"},
      {"qwen3_moe", {{"use_sliding_window", true}}, "use_sliding_window is true; kzero computes"},
      {"qwen3_moe", {{"attention_bias", true}}, "attention_bias is true; kzero has no bias after"},
      {"olmoe",
       {{"clip_qkv", 8.0}},
       "clip_qkv is 8.0; kzero does not clip queries, keys and values"},
      {"olmoe",
       {{"head_dim", 64}},
       "head_dim is 64; transformers 4 computes hidden_size / num_attention_heads"},
      {"mixtral",
       {{"num_experts_per_tok", 9}},
       "num_experts_per_tok is 9; there are 8 experts to choose from"},
      {"mixtral", {{"hidden_act", "gelu"}}, "hidden_act is \"gelu\"; kzero computes silu"}};
  for (const auto& [type, changes, expected] : cases) {
    json config = of_type(type);
    config.update(changes);
    const std::string text = refusal_of(config);
    EXPECT_TRUE(contains(text, std::string("\n  ") + expected)) << expected << "\n" << text;
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << "more than one problem: " << text;
  }
  for (const json& harmless :
       {json{{"mlp_only_layers", nullptr}}, json{{"mlp_only_layers", json::array()}},
        json{{"decoder_sparse_step", 1}}, json{{"output_router_logits", true}}}) {
    json config = of_type("qwen3_moe");
    config.update(harmless);
    EXPECT_EQ(values_of(config), values_of(of_type("qwen3_moe"))) << harmless;
  }
}

TEST(ExpertConfig, AModelIsWrittenAsItsClassForBothGenerations) {
  const std::map<std::string, std::pair<const char*, json>> all{
      {"qwen3_moe",
       {"Qwen3MoeForCausalLM",
        {{"moe_intermediate_size", 48},
         {"intermediate_size", 144},
         {"norm_topk_prob", false},
         {"mlp_only_layers", json::array()},
         {"decoder_sparse_step", 1},
         {"use_sliding_window", false}}}},
      {"qwen2_moe",
       {"Qwen2MoeForCausalLM",
        {{"moe_intermediate_size", 48},
         {"shared_expert_intermediate_size", 5632},
         {"norm_topk_prob", false},
         {"qkv_bias", true}}}},
      {"olmoe",
       {"OlmoeForCausalLM",
        {{"intermediate_size", 48}, {"norm_topk_prob", false}, {"clip_qkv", nullptr}}}},
      {"mixtral",
       {"MixtralForCausalLM",
        {{"intermediate_size", 48}, {"sliding_window", nullptr}, {"router_jitter_noise", 0.0}}}}};
  for (const auto& [type, expected] : all) {
    json config = of_type(type);
    config.update({{"num_experts", 6},
                   {"num_experts_per_tok", 3},
                   {"intermediate_size", 48},
                   {"moe_intermediate_size", 48},
                   {"router_aux_loss_coef", 0.02}});
    const json out = written_as(model_of(config));
    EXPECT_EQ(out.at("architectures"), json::array({expected.first}));
    for (const auto& [key, value] : expected.second.items()) EXPECT_EQ(out.at(key), value) << key;
    EXPECT_EQ(out.at("num_experts"), 6);
    EXPECT_EQ(out.at("num_local_experts"), 6);
    EXPECT_EQ(out.at("num_experts_per_tok"), 3);
    EXPECT_EQ(out.at("router_aux_loss_coef"), 0.02);
    EXPECT_EQ(values_of(out), values_of(config)) << type;
  }
}

/// The error of an export of the class's default model after a change.
std::string refused_export(const char* type, const std::function<void(deck::Model&)>& change) {
  deck::Model model = model_of(of_type(type));
  change(model);
  return error_of(ExitCode::files, [&] { config_text(model, Dtype::fp32, {}, "step"); });
}

TEST(ExpertConfig, WhatNoClassComputesIsRefusedByItsKeys) {
  EXPECT_EQ(refused_export("qwen3_moe",
                           [](deck::Model& model) {
                             model.qk_norm = false;
                             model.normalized_gates = true;
                           }),
            "step: no class of transformers that kzero writes computes this model:\n"
            "  Qwen3MoeForCausalLM needs model.qk_norm = true\n"
            "  MixtralForCausalLM needs model.family = \"mixtral\"");
  // Mixtral would not compute these.
  EXPECT_EQ(refused_export("qwen3_moe", [](deck::Model& model) { model.qk_norm = false; }),
            "step: no class of transformers that kzero writes computes this model:\n"
            "  Qwen3MoeForCausalLM needs model.qk_norm = true");
  EXPECT_EQ(refused_export("qwen3_moe",
                           [](deck::Model& model) {
                             model.qk_norm = false;
                             model.qkv_bias = true;
                             model.window = 5;
                           }),
            "step: no class of transformers that kzero writes computes this model:\n"
            "  Qwen3MoeForCausalLM lacks model.qkv_bias = true, model.window = 5, and needs "
            "model.qk_norm = true");
  EXPECT_EQ(
      refused_export("qwen3_moe",
                     [](deck::Model& model) {
                       model.router_bias = true;
                       model.shared_feed_forward = 100;
                     }),
      "step: no class of transformers that kzero writes computes this model:\n"
      "  Qwen3MoeForCausalLM lacks model.shared_feed_forward = 100, model.router_bias = true\n"
      "  Qwen2MoeForCausalLM lacks model.qk_norm = true, model.router_bias = true, and needs "
      "model.qkv_bias = true, model.shared_gate = true\n"
      "  Glm4MoeForCausalLM needs model.router_score = \"sigmoid\", "
      "model.shared_feed_forward to be a multiple of model.feed_forward = 768");
  EXPECT_EQ(refused_export("mixtral", [](deck::Model& model) { model.normalized_gates = false; }),
            "step: no class of transformers that kzero writes computes this model:\n"
            "  MixtralForCausalLM lacks model.normalized_gates = false");
  EXPECT_EQ(refused_export("olmoe", [](deck::Model& model) { model.head_dim = 64; }),
            "step: no class of transformers that kzero writes computes this model:\n"
            "  OlmoeForCausalLM lacks model.head_dim = 64, which is not model.hidden / "
            "model.heads");
}

}  // namespace

}  // namespace kzero::convert
