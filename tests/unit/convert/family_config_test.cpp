// config.json of every family except GPT-2: what each class's keys and defaults imply, and the
// settings that are refused by name.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "unit/convert/configs.hpp"
#include "unit/convert/models.hpp"

namespace kzero::convert {

namespace {

using nlohmann::json;

/// Returns the implied value of a key. Fails unless there is exactly one.
deck::ImpliedValue value_of(const std::vector<deck::ImpliedValue>& all, const std::string& path) {
  std::vector<deck::ImpliedValue> found;
  for (const deck::ImpliedValue& one : all)
    if (one.path == path) found.push_back(one);
  EXPECT_EQ(found.size(), 1U) << path;
  return found.empty() ? deck::ImpliedValue{} : found.front();
}

struct Defaults {
  const char* type;
  Index vocab, feed_forward, kv_heads, sequence;
  bool qkv_bias, qk_norm;
};

TEST(LlamaConfig, MissingKeysMeanWhatEachClassTakesThemToMean) {
  const Defaults all[] = {{"llama", 32000, 11008, 32, 2048, false, false},
                          {"mistral", 32000, 14336, 8, 131072, false, false},
                          {"qwen2", 151936, 22016, 32, 32768, true, false},
                          {"qwen3", 151936, 22016, 32, 32768, false, true}};
  for (const Defaults& defaults : all) {
    json config = of_type(defaults.type);
    if (defaults.type == std::string("mistral")) config["sliding_window"] = nullptr;
    const auto implied = implied_by(config);
    const std::pair<const char*, deck::Value> expected[] = {
        {"model.family", std::string("llama")},
        {"model.layers", Index{32}},
        {"model.hidden", Index{4096}},
        {"model.heads", Index{32}},
        {"model.kv_heads", defaults.kv_heads},
        {"model.head_dim", Index{128}},
        {"model.sequence", defaults.sequence},
        {"model.vocab", defaults.vocab},
        {"model.feed_forward", defaults.feed_forward},
        {"model.qkv_bias", defaults.qkv_bias},
        {"model.qk_norm", defaults.qk_norm},
        {"model.window", Index{0}},
        {"model.full_attention_every", Index{0}},
        {"model.window_rope_theta", 0.0},
        {"model.no_rope_every", Index{0}},
        {"model.attention_scale", 0.0},
        {"model.embedding_scale", 0.0},
        {"model.residual_scale", 1.0},
        {"model.logit_divisor", 1.0},
        {"model.experts", Index{0}},
        {"model.experts_per_token", Index{0}},
        {"model.normalized_gates", true},
        {"model.shared_feed_forward", Index{0}},
        {"model.shared_gate", false},
        {"model.router_score", std::string("softmax")},
        {"model.router_bias", false},
        {"model.tied_embeddings", false},
        {"model.norm_eps", 1e-6},
        {"model.rope_theta", 10000.0},
        {"model.rope_scaling", std::string("none")},
        {"model.init_std", 0.02}};
    EXPECT_EQ(implied.size(), std::size(expected)) << defaults.type;
    for (const auto& [path, value] : expected) {
      EXPECT_EQ(value_of(implied, path).value, value) << defaults.type << " " << path;
    }
    EXPECT_EQ(value_of(implied, "model.layers").origin,
              "hf/config.json: num_hidden_layers is missing, which means 32");
    EXPECT_EQ(value_of(implied, "model.qk_norm").origin,
              std::string("hf/config.json: model_type is \"") + defaults.type + "\"");
  }
}

TEST(LlamaConfig, KeysGiveTheirValuesAndOrigins) {
  const json config{
      {"architectures", {"LlamaModel"}}, {"num_hidden_layers", 3},      {"hidden_size", 48},
      {"num_attention_heads", 6},        {"num_key_value_heads", 2},    {"intermediate_size", 100},
      {"max_position_embeddings", 40},   {"vocab_size", 101},           {"rms_norm_eps", 1e-5},
      {"initializer_range", 0.01},       {"tie_word_embeddings", true}, {"head_dim", 10},
      {"attention_dropout", 0.1},        {"pretraining_tp", 2}};
  const auto implied = implied_by(config);
  const std::tuple<const char*, deck::Value, const char*> expected[] = {
      {"model.family", std::string("llama"), "architectures is [\"LlamaModel\"]"},
      {"model.layers", Index{3}, "num_hidden_layers is 3"},
      {"model.hidden", Index{48}, "hidden_size is 48"},
      {"model.heads", Index{6}, "num_attention_heads is 6"},
      {"model.kv_heads", Index{2}, "num_key_value_heads is 2"},
      {"model.head_dim", Index{10}, "head_dim is 10"},
      {"model.sequence", Index{40}, "max_position_embeddings is 40"},
      {"model.vocab", Index{101}, "vocab_size is 101"},
      {"model.feed_forward", Index{100}, "intermediate_size is 100"},
      {"model.tied_embeddings", true, "tie_word_embeddings is true"},
      {"model.norm_eps", 1e-5, "rms_norm_eps is 1e-05"},
      {"model.init_std", 0.01, "initializer_range is 0.01"}};
  for (const auto& [path, value, origin] : expected) {
    const deck::ImpliedValue found = value_of(implied, path);
    EXPECT_EQ(found.value, value) << path;
    EXPECT_EQ(found.origin, std::string("hf/config.json: ") + origin);
    const std::string key = path;
    EXPECT_EQ(found.is_binding, key != "model.sequence" && key != "model.init_std") << path;
  }
}

TEST(LlamaConfig, NullIsTheNumberOfHeadsOrTheirWidth) {
  json config{{"model_type", "mistral"},   {"num_key_value_heads", nullptr},
              {"head_dim", nullptr},       {"hidden_size", 96},
              {"sliding_window", nullptr}, {"num_attention_heads", 6}};
  auto implied = implied_by(config);
  EXPECT_EQ(value_of(implied, "model.kv_heads").value, deck::Value(Index{6}));
  EXPECT_EQ(value_of(implied, "model.head_dim").value, deck::Value(Index{16}));
  config["model_type"] = "qwen3";
  EXPECT_TRUE(contains(refusal_of(config), "head_dim is null; model.head_dim must be"));
  config.erase("head_dim");
  EXPECT_EQ(value_of(implied_by(config), "model.head_dim").value, deck::Value(Index{128}));
}

TEST(LlamaConfig, MistralHasAWindowInEveryLayer) {
  json config{{"model_type", "mistral"}};
  const auto window = [&] { return value_of(implied_by(config), "model.window").value; };
  EXPECT_EQ(window(), deck::Value(Index{4096})) << "a missing key";
  for (const Index found : {7, 131072}) {  // also one that no sequence exceeds
    config["sliding_window"] = found;
    EXPECT_EQ(window(), deck::Value(found));
  }
  config["sliding_window"] = nullptr;
  EXPECT_EQ(window(), deck::Value(Index{0}));
  config = {{"model_type", "llama"}, {"sliding_window", 7}};
  EXPECT_EQ(window(), deck::Value(Index{0})) << "a key that LlamaConfig does not have";
}

void expect_values(const json& config, const std::map<std::string, deck::Value>& expected) {
  const auto found = values_of(config);
  for (const auto& [path, value] : expected) {
    ASSERT_TRUE(found.contains(path)) << path << " of " << config;
    EXPECT_EQ(found.at(path), value) << path << " of " << config;
  }
}

/// Layer types by their initials: "ssf".
json layer_types(const std::string& initials) {
  json list = json::array();
  for (const char c : initials) list.push_back(c == 's' ? "sliding_attention" : "full_attention");
  return list;
}

const json gemma_linear{{"rope_type", "linear"}, {"factor", 8.0}};
const json olmo_yarn{{"rope_type", "yarn"},
                     {"factor", 8.0},
                     {"original_max_position_embeddings", 8192},
                     {"attention_factor", 1.2079441541679836}};

// The config.json of google/gemma-3-27b-it, without the part for images.
TEST(FamilyConfig, Gemma3IsReadFromTheTextPartOfAModelWithImages) {
  json config{{"architectures", {"Gemma3ForConditionalGeneration"}},
              {"model_type", "gemma3"},
              {"eos_token_id", {1, 106}},
              {"text_config",
               {{"head_dim", 128},
                {"hidden_size", 5376},
                {"intermediate_size", 21504},
                {"model_type", "gemma3_text"},
                {"num_attention_heads", 32},
                {"num_hidden_layers", 62},
                {"num_key_value_heads", 16},
                {"query_pre_attn_scalar", 168},
                {"rope_scaling", gemma_linear},
                {"sliding_window", 1024}}},
              {"vision_config", {{"hidden_size", 1152}}}};
  expect_values(config, {{"model.family", std::string("gemma3")},
                         {"model.layers", Index{62}},
                         {"model.hidden", Index{5376}},
                         {"model.head_dim", Index{128}},
                         {"model.kv_heads", Index{16}},
                         {"model.vocab", Index{262208}},
                         {"model.window", Index{1024}},
                         {"model.full_attention_every", Index{6}},
                         {"model.attention_scale", std::pow(168.0, -0.5)},
                         {"model.embedding_scale", 0.0},
                         {"model.tied_embeddings", true},
                         {"model.norm_eps", 1e-6},
                         {"model.rope_theta", 1e6},
                         {"model.rope_scaling", std::string("linear")},
                         {"model.rope_factor", 8.0},
                         {"model.window_rope_theta", 1e4}});
  EXPECT_EQ(value_of(implied_by(config), "model.hidden").origin,
            "hf/config.json: text_config.hidden_size is 5376");
  config["text_config"]["attn_logit_softcapping"] = 50.0;
  EXPECT_TRUE(contains(refusal_of(config), "text_config.attn_logit_softcapping is 50.0; kzero"));
  config.erase("text_config");
  EXPECT_TRUE(contains(refusal_of(config), "text_config is missing; kzero needs this object"));
}

TEST(FamilyConfig, Gemma3IsReadAsBothGenerationsWriteIt) {
  const json former{{"model_type", "gemma3_text"},  {"head_dim", 256},
                    {"query_pre_attn_scalar", 256}, {"rope_local_base_freq", 10000},
                    {"rope_scaling", nullptr},      {"rope_theta", 1000000},
                    {"sliding_window", 512},        {"sliding_window_pattern", 6}};
  json now = former;
  for (const char* key : {"rope_local_base_freq", "rope_scaling", "rope_theta"}) now.erase(key);
  now["rope_parameters"] = {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 1e6}}},
                            {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}};
  now["sliding_window_pattern"] = 2;  // layer_types wins
  now["layer_types"] = layer_types("sssssfsssssfsssssfsssssfss");
  EXPECT_EQ(values_of(former), values_of(now));
  expect_values(former, {{"model.window", Index{512}},
                         {"model.full_attention_every", Index{6}},
                         {"model.attention_scale", 0.0},
                         {"model.rope_theta", 1e6},
                         {"model.window_rope_theta", 1e4}});
  expect_values(of_type("gemma3_text"), {{"model.window", Index{4096}},
                                         {"model.full_attention_every", Index{6}},
                                         {"model.window_rope_theta", 1e4}});
}

// The keys of allenai/Olmo-3-7B-Instruct that matter here.
TEST(FamilyConfig, Olmo3ScalesOnlyLayersWithoutAWindow) {
  json config{{"model_type", "olmo3"},    {"num_hidden_layers", 8},
              {"rope_theta", 500000},     {"max_position_embeddings", 65536},
              {"sliding_window", 4096},   {"layer_types", layer_types("sssfsssf")},
              {"rope_scaling", olmo_yarn}};
  const std::map<std::string, deck::Value> expected{
      {"model.family", std::string("olmo2")},
      {"model.window", Index{4096}},
      {"model.full_attention_every", Index{4}},
      {"model.rope_theta", 5e5},
      {"model.rope_scaling", std::string("yarn")},
      {"model.rope_attention_factor", 1.2079441541679836},
      {"model.window_rope_theta", 5e5}};
  expect_values(config, expected);
  config.erase("layer_types");
  expect_values(config, expected);
  config["rope_parameters"] = {{"full_attention", olmo_yarn},
                               {"sliding_attention", {{"rope_type", "default"}}}};
  expect_values(config, expected);
  config["rope_parameters"]["sliding_attention"]["rope_theta"] = 7.0;
  expect_values(config, {{"model.rope_theta", 5e5}, {"model.window_rope_theta", 7.0}});
}

TEST(FamilyConfig, LayersOfOneKindHaveOneRotation) {
  json config{{"model_type", "olmo3"},
              {"num_hidden_layers", 2},
              {"layer_types", layer_types("ss")},
              {"rope_parameters",
               {{"full_attention", olmo_yarn},
                {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 7.0}}}}}};
  expect_values(config, {{"model.window", Index{4096}},
                         {"model.full_attention_every", Index{0}},
                         {"model.rope_theta", 7.0},
                         {"model.rope_scaling", std::string("none")},
                         {"model.window_rope_theta", 0.0}});
  config["layer_types"] = layer_types("ff");
  config["sliding_window"] = nullptr;
  expect_values(config, {{"model.window", Index{0}},
                         {"model.full_attention_every", Index{0}},
                         {"model.rope_theta", 5e5},
                         {"model.rope_scaling", std::string("yarn")},
                         {"model.window_rope_theta", 0.0}});
  config["layer_types"] = layer_types("sf");
  config["sliding_window"] = 9;
  config["rope_parameters"]["sliding_attention"] = olmo_yarn;
  expect_values(config, {{"model.window", Index{9}},
                         {"model.rope_scaling", std::string("yarn")},
                         {"model.window_rope_theta", 0.0}});
}

TEST(FamilyConfig, ApertusNeedsItsRotation) {
  json config = of_type("apertus");
  EXPECT_TRUE(contains(refusal_of(config), "rope_parameters is missing; transformers 4 and 5"));
  config["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", 8.0},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_position_embeddings", 8192}};
  expect_values(config, {{"model.family", std::string("apertus")},
                         {"model.kv_heads", Index{32}},
                         {"model.feed_forward", Index{14336}},
                         {"model.rope_theta", 12e6},
                         {"model.rope_scaling", std::string("llama3")}});
  config["hidden_act"] = "silu";
  EXPECT_TRUE(contains(refusal_of(config), "hidden_act is \"silu\"; kzero computes xielu"));
}

TEST(FamilyConfig, SmolLm3HasLayersWithoutRotaryPositions) {
  const auto every = [](const json& changes) {
    json config = of_type("smollm3");
    config["num_hidden_layers"] = 6;
    config.update(changes);
    return value_of(implied_by(config), "model.no_rope_every").value;
  };
  EXPECT_EQ(every(json::object()), deck::Value(Index{4}));
  EXPECT_EQ(every({{"no_rope_layer_interval", 3}}), deck::Value(Index{3}));
  EXPECT_EQ(every({{"num_hidden_layers", 3}}), deck::Value(Index{0})) << "fewer than the default";
  EXPECT_EQ(every({{"no_rope_layers", {1, 0, 1, 0, 1, 0}}}), deck::Value(Index{2}));
  EXPECT_EQ(every({{"no_rope_layers", {1, 1, 1, 1, 1, 1}}}), deck::Value(Index{0}));
  expect_values(
      of_type("smollm3"),
      {{"model.tied_embeddings", true}, {"model.rope_theta", 2e6}, {"model.kv_heads", Index{4}}});
}

TEST(FamilyConfig, GraniteHasFourFactors) {
  json config = of_type("granite");
  expect_values(config, {{"model.attention_scale", 1.0},
                         {"model.embedding_scale", 1.0},
                         {"model.residual_scale", 1.0},
                         {"model.logit_divisor", 1.0}});
  config.update({{"attention_multiplier", 0.0078125},
                 {"embedding_multiplier", 12},
                 {"residual_multiplier", 0.22},
                 {"logits_scaling", 16.0}});
  expect_values(config, {{"model.family", std::string("llama")},
                         {"model.attention_scale", 0.0078125},
                         {"model.embedding_scale", 12.0},
                         {"model.residual_scale", 0.22},
                         {"model.logit_divisor", 16.0}});
}

TEST(FamilyConfig, LayersThatAreNoPatternAreRefusedByTheFirst) {
  const std::tuple<const char*, json, const char*> cases[] = {
      {"olmo3",
       {{"layer_types", layer_types("sfssf")}},
       "layer_types[3] is \"sliding_attention\"; kzero computes \"full_attention\" in every so "
       "many "
       "layers, and after layer_types[1] that is every 2"},
      {"olmo3",
       {{"layer_types", layer_types("fsssf")}},
       "layer_types[1] is \"sliding_attention\"; "},
      {"gemma3_text",
       {{"layer_types", layer_types("ssfff")}},
       "layer_types[3] is \"full_attention\"; "},
      {"gemma3_text",
       {{"layer_types", layer_types("ssf")}},
       "it must be a list of num_hidden_layers = 5 entries"},
      {"gemma3_text",
       {{"layer_types", "full_attention"}},
       "layer_types is \"full_attention\"; it must be a list of num_hidden_layers = 5 entries"},
      {"gemma3_text",
       {{"layer_types", {"sliding_attention", "chunked_attention", 1, 2, 3}}},
       "layer_types[1] is \"chunked_attention\"; kzero computes \"sliding_attention\" and \"full_"},
      {"gemma3_text",
       {{"sliding_window_pattern", 6}},
       "sliding_window_pattern is 6; it must be 1 to num_hidden_layers = 5"},
      {"gemma3_text", {{"sliding_window_pattern", 0}}, "sliding_window_pattern is 0; it must be 1"},
      {"gemma3_text", {{"sliding_window", 0}}, "sliding_window is 0; it must be above 0"},
      {"gemma3_text",
       {{"sliding_window", nullptr}},
       "sliding_window is null; model.window must be"},
      {"mistral", {{"sliding_window", 0}}, "sliding_window is 0; it must be above 0"},
      {"smollm3",
       {{"no_rope_layers", {1, 0, 1, 1, 1}}},
       "no_rope_layers[3] is 1; kzero computes 0 "},
      {"smollm3",
       {{"no_rope_layers", {1, 0, 1}}},
       "no_rope_layers is [1,0,1]; it must be a list of"},
      {"smollm3",
       {{"no_rope_layers", {0, 0, 0, 0, 0}}},
       "no_rope_layers is [0,0,0,0,0]; kzero needs a layer with rotary positions"},
      {"smollm3",
       {{"no_rope_layer_interval", 6}},
       "no_rope_layer_interval is 6; it must be 1 to num_hidden_layers = 5"},
      {"smollm3", {{"use_sliding_window", true}}, "use_sliding_window is true; kzero computes"},
      {"granite", {{"attention_multiplier", 0}}, "attention_multiplier is 0; it must be above 0"},
      {"gemma3_text",
       {{"query_pre_attn_scalar", 0}},
       "query_pre_attn_scalar is 0; it must be a num"},
      {"gemma3_text",
       {{"use_bidirectional_attention", true}},
       "use_bidirectional_attention is true"},
      {"gemma3_text",
       {{"hidden_activation", "gelu"}},
       "hidden_activation is \"gelu\"; kzero computes "
       "gelu_pytorch_tanh"},
      {"olmo2", {{"attention_bias", true}}, "attention_bias is true; kzero has no bias after"}};
  for (const auto& [type, changes, expected] : cases) {
    json config = of_type(type);
    config["num_hidden_layers"] = 5;
    config.update(changes);
    const std::string text = refusal_of(config);
    EXPECT_TRUE(contains(text, expected)) << expected << "\n" << text;
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << "more than one problem: " << text;
  }
}

TEST(FamilyConfig, RotationsThatKzeroDoesNotComputeInOneKindAreRefused) {
  const json plain{{"rope_type", "default"}, {"rope_theta", 1e4}};
  const std::tuple<const char*, json, const char*> cases[] = {
      {"gemma3_text",
       {{"full_attention", {{"rope_type", "su"}}}, {"sliding_attention", plain}},
       "rope_parameters.full_attention.rope_type is \"su\"; kzero computes default, linear"},
      {"gemma3_text",
       {{"full_attention", plain}, {"sliding_attention", {{"rope_type", "dynamic"}}}},
       "rope_parameters.sliding_attention.rope_type is \"dynamic\"; kzero computes default, "
       "linear"},
      {"olmo3",
       {{"full_attention", plain}, {"sliding_attention", olmo_yarn}},
       "kzero scales rotary positions in layers without a window, or in all layers alike"},
      {"olmo3",
       {{"full_attention", plain}, {"sliding_attention", {{"rope_theta", 0}}}},
       "rope_parameters.sliding_attention.rope_theta is 0; model.rope_theta must be"},
      {"olmo3", {{"full_attention", 3}}, "rope_parameters.full_attention is 3; kzero reads plain"},
      {"olmo3", plain, "kzero reads an object for each of full_attention and sliding_attention"}};
  for (const auto& [type, parameters, expected] : cases) {
    json config = of_type(type);
    config["rope_parameters"] = parameters;
    const std::string text = refusal_of(config);
    EXPECT_TRUE(contains(text, expected)) << expected << "\n" << text;
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << "more than one problem: " << text;
  }
  json config = of_type("olmo3");
  config["rope_theta"] = 10000.0;
  EXPECT_TRUE(contains(refusal_of(config), "rope_theta is 10000.0; in layers with a window"));
  config = {{"model_type", "gemma3_text"},
            {"rope_scaling", gemma_linear},
            {"rope_parameters", {{"full_attention", plain}, {"sliding_attention", plain}}}};
  EXPECT_TRUE(contains(refusal_of(config), "contradicts it"));
}

TEST(LlamaConfig, WhatKzeroDoesNotComputeIsRefusedByName) {
  const std::tuple<const char*, const char*, json, const char*> cases[] = {
      {"llama", "hidden_act", "gelu", "hidden_act is \"gelu\"; kzero computes silu"},
      {"llama", "attention_bias", true, "attention_bias is true; kzero has no bias after"},
      {"qwen3", "attention_bias", true, "attention_bias is true; kzero has no bias after"},
      {"llama", "mlp_bias", true, "mlp_bias is true; kzero has no biases in the feed-forward"},
      {"qwen2", "use_sliding_window", true, "use_sliding_window is true; kzero computes attention"},
      {"mistral", "sliding_window", "x", "sliding_window is \"x\"; model.window must be"},
      {"qwen3", "layer_types", json::array({"full_attention", "sliding_attention"}),
       "layer_types is [\"full_attention\",\"sliding_attention\"]; kzero reads"},
      {"qwen3", "layer_types", "full_attention", "layer_types is \"full_attention\"; kzero"},
      {"llama", "partial_rotary_factor", 0.5, "partial_rotary_factor is 0.5; kzero turns"},
      {"llama", "quantization_config", {{"bits", 4}}, "quantization_config is {\"bits\":4}; kzero"},
      {"llama", "num_attention_heads", 0, "num_attention_heads is 0; it must be above 0"},
      {"llama", "num_key_value_heads", 0, "num_key_value_heads is 0; it must be above 0"},
      {"llama", "head_dim", 0, "head_dim is 0; it must be above 0"},
      {"llama", "intermediate_size", 0, "intermediate_size is 0; it must be above 0"},
      {"llama", "intermediate_size", json::array({1, 2}),
       "intermediate_size is [1,2]; model.feed_forward must"},
      {"llama", "hidden_size", 1e300, "hidden_size is 1e+300; model.hidden must be an integer"},
      {"llama", "hidden_size", "4096", "hidden_size is \"4096\"; model.hidden must be an integer"},
      {"llama", "rms_norm_eps", -1, "rms_norm_eps is -1; model.norm_eps must be"},
      {"llama", "rms_norm_eps", "1e-5", "rms_norm_eps is \"1e-5\"; model.norm_eps must be"},
      {"llama", "tie_word_embeddings", 1, "tie_word_embeddings is 1; model.tied_embeddings must"},
      {"llama", "num_key_value_heads", {{"\x1b", 1}}, "num_key_value_heads is {\"\\u001b\":1}; "}};
  for (const auto& [type, key, value, expected] : cases) {
    json config = of_type(type);
    config[key] = value;
    const std::string text = refusal_of(config);
    EXPECT_TRUE(contains(text, std::string("\n  ") + expected)) << expected << "\n" << text;
  }
}

TEST(LlamaConfig, WhatChangesNothingIsAccepted) {
  const std::tuple<const char*, const char*, json> cases[] = {
      {"mistral", "sliding_window", nullptr},
      {"mistral", "sliding_window", 131072},
      {"qwen2", "sliding_window", 4096},
      {"qwen2", "attention_bias", true},
      {"qwen3", "layer_types", json::array({"full_attention"})},
      {"llama", "layer_types", nullptr},
      {"llama", "partial_rotary_factor", 1.0},
      {"llama", "quantization_config", nullptr}};
  for (const auto& [type, key, value] : cases) {
    json config = of_type(type);
    config[key] = value;
    EXPECT_NO_THROW(implied_by(config)) << type << " " << key;
  }
}

TEST(LlamaConfig, EverythingWrongIsSaidAtOnce) {
  const json config{{"model_type", "llama"}, {"mlp_bias", true}, {"hidden_size", 0}};
  const std::string text = refusal_of(config);
  EXPECT_TRUE(contains(text, "hidden_size is 0; ") && contains(text, "mlp_bias is true; ")) << text;
}

TEST(LlamaConfig, ClassesAreKnownByEitherNameAndMustAgree) {
  for (const char* name : {"LlamaForCausalLM", "LlamaModel", "Qwen2ForCausalLM", "Qwen2Model",
                           "Qwen3ForCausalLM", "Qwen3Model"})
    EXPECT_NO_THROW(implied_by({{"architectures", {name}}})) << name;
  for (const char* name : {"MistralForCausalLM", "MistralModel"})
    EXPECT_NO_THROW(implied_by({{"architectures", {name}}, {"sliding_window", nullptr}})) << name;
  EXPECT_TRUE(
      contains(refusal_of({{"architectures", {"Qwen3ForCausalLM"}}, {"model_type", "llama"}}),
               "architectures is [\"Qwen3ForCausalLM\"], which contradicts model_type"));
  EXPECT_TRUE(contains(refusal_of({{"architectures", {"Gemma2ForCausalLM"}}}),
                       "architectures is [\"Gemma2ForCausalLM\"]; kzero reads one of GPT2LMHead"));
  EXPECT_TRUE(
      contains(refusal_of({{"model_type", "qwen3_next"}}),
               "model_type is \"qwen3_next\"; kzero reads gpt2, llama, mistral, qwen2, qwen3"));
}

TEST(LlamaConfig, ADeckOfAnotherFamilyIsToldThatAlone) {
  const fs::path config = fs::path(KZERO_TEST_DATA) / "reference" / "qwen3" / "config.json";
  const std::string text =
      error_of(ExitCode::files, [&] { require_same_function(config, even_model()); });
  EXPECT_TRUE(
      contains(text, "architectures is [\"Qwen3ForCausalLM\"], model.family is \"gpt2\"\n("))
      << text;
}

TEST(LlamaConfig, HostileFilesAreOneError) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  for (const std::string& text :
       {std::string(), std::string("[1]"), std::string("{\"model_type\":"),
        "{\"model_type\":\"llama\",\"layer_types\":" + deep + "}",
        std::string("{\"model_type\":\"llama\xff\"}")}) {
    EXPECT_EQ(error_of(ExitCode::files,
                       [&] {
                         architecture({config_file, text});
                       }),
              "hf/config.json: is not a JSON object");
  }
  const json huge{{"model_type", "llama"}, {"hidden_act", std::string(100000, 'x')}};
  EXPECT_LT(refusal_of(huge).size(), 300U);
}

}  // namespace

}  // namespace kzero::convert
