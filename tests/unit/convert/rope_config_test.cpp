// Rotary positions in config.json: both generations of keys, every scaling, every refusal.
#include <nlohmann/json.hpp>

#include "convert/architecture.hpp"
#include "convert/config_export.hpp"
#include "unit/convert/models.hpp"

namespace kzero::convert {

namespace {

using nlohmann::json;
using Implied = std::map<std::string, deck::Value>;

/// The implied keys for rotary positions.
Implied rope_of(json config) {
  config["model_type"] = "llama";
  Implied found;
  for (const auto& one : architecture({"config.json", config.dump()}))
    if (one.path.starts_with("model.rope_")) found[one.path] = one.value;
  return found;
}

std::string rope_refusal(json config) {
  return error_of(ExitCode::files, [&] { rope_of(std::move(config)); });
}

const json llama3{{"rope_type", "llama3"},
                  {"factor", 8.0},
                  {"low_freq_factor", 1.0},
                  {"high_freq_factor", 4.0},
                  {"original_max_position_embeddings", 8192}};
const json yarn{
    {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}};

json with(json object, const char* key, const json& value) {
  object[key] = value;
  return object;
}

const Implied llama3_values{
    {"model.rope_theta", 5e5},           {"model.rope_scaling", std::string("llama3")},
    {"model.rope_factor", 8.0},          {"model.rope_original_sequence", Index{8192}},
    {"model.rope_low_freq_factor", 1.0}, {"model.rope_high_freq_factor", 4.0}};

TEST(RopeConfig, BothGenerationsSayTheSame) {
  EXPECT_EQ(rope_of({{"rope_theta", 5e5}, {"rope_scaling", llama3}}), llama3_values);
  EXPECT_EQ(rope_of({{"rope_parameters", with(llama3, "rope_theta", 5e5)}}), llama3_values);
  EXPECT_EQ(rope_of({{"rope_theta", 5e5},
                     {"rope_scaling", llama3},
                     {"rope_parameters", with(llama3, "rope_theta", 5e5)}}),
            llama3_values);
  EXPECT_EQ(rope_of({{"rope_theta", 1e4}, {"rope_parameters", with(llama3, "rope_theta", 5e5)}}),
            llama3_values);
  const Implied none{{"model.rope_theta", 1e4}, {"model.rope_scaling", std::string("none")}};
  EXPECT_EQ(rope_of(json::object()), none);
  EXPECT_EQ(rope_of({{"rope_scaling", nullptr}, {"rope_parameters", json::object()}}), none);
  EXPECT_EQ(rope_of({{"rope_scaling", {{"type", "default"}}}}), none);
}

TEST(RopeConfig, TheFormerNameOfTheTypeIsRead) {
  const Implied expected{{"model.rope_theta", 1e4},
                         {"model.rope_scaling", std::string("linear")},
                         {"model.rope_factor", 2.0}};
  EXPECT_EQ(rope_of({{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}}), expected);
  EXPECT_EQ(rope_of({{"rope_scaling", {{"type", "linear"}, {"factor", 2}}},
                     {"rope_parameters", {{"rope_type", "linear"}, {"factor", 2.0}}}}),
            expected);
}

TEST(RopeConfig, YarnHasItsDefaults) {
  Implied expected{
      {"model.rope_theta", 1e4},           {"model.rope_scaling", std::string("yarn")},
      {"model.rope_factor", 4.0},          {"model.rope_original_sequence", Index{32768}},
      {"model.rope_beta_fast", 32.0},      {"model.rope_beta_slow", 1.0},
      {"model.rope_attention_factor", 0.0}};
  EXPECT_EQ(rope_of({{"rope_scaling", yarn}}), expected);
  json full = with(with(with(yarn, "beta_fast", 16), "beta_slow", 2), "attention_factor", 1.25);
  full["truncate"] = true;
  full["finetuned"] = true;  // in some files; no reader uses it
  full["mscale"] = nullptr;
  expected["model.rope_beta_fast"] = 16.0;
  expected["model.rope_beta_slow"] = 2.0;
  expected["model.rope_attention_factor"] = 1.25;
  EXPECT_EQ(rope_of({{"rope_scaling", full}}), expected);
}

TEST(RopeConfig, AMissingOriginalLengthIsTheFiles) {
  json scaling = yarn;
  scaling.erase("original_max_position_embeddings");
  const auto length = [](const json& config) {
    return rope_of(config).at("model.rope_original_sequence");
  };
  EXPECT_EQ(length({{"rope_scaling", scaling}, {"max_position_embeddings", 4096}}),
            deck::Value(Index{4096}));
  EXPECT_EQ(length({{"rope_scaling", scaling},
                    {"max_position_embeddings", 4096},
                    {"original_max_position_embeddings", 1024}}),
            deck::Value(Index{1024}));
  EXPECT_TRUE(contains(rope_refusal({{"rope_scaling", scaling}}),
                       "rope_scaling.original_max_position_embeddings is missing; "
                       "model.rope_original_sequence needs it"));
}

TEST(RopeConfig, WhatKzeroDoesNotComputeIsRefusedByName) {
  const std::pair<json, const char*> cases[] = {
      {with(llama3, "rope_type", "dynamic"),
       "rope_type is \"dynamic\"; kzero computes default, lin"},
      {with(llama3, "rope_type", "longrope"), "rope_type is \"longrope\"; kzero computes default"},
      {{{"type", "su"}}, "type is \"su\"; kzero computes default, linear, llama3, yarn"},
      {with(llama3, "rope_type", 7), "rope_type is 7; kzero computes default"},
      {with(llama3, "type", "linear"),
       "type is \"linear\"; rope_scaling.rope_type is \"llama3\" con"},
      {with(yarn, "mscale", 0.7), "mscale is 0.7; kzero computes YaRN without it"},
      {with(yarn, "mscale_all_dim", 1.0), "mscale_all_dim is 1.0; kzero computes YaRN without it"},
      {with(yarn, "truncate", false), "truncate is false; kzero rounds the ends"},
      {with(yarn, "attention_factor", 0), "attention_factor is 0; it must be above 0"},
      {with(yarn, "beta_fast", 0), "beta_fast is 0; model.rope_beta_fast must be"},
      {with(yarn, "factor", 0.5), "factor is 0.5; model.rope_factor must be"},
      {with(yarn, "factor", nullptr), "factor is null; model.rope_factor must be"},
      {with(yarn, "partial_rotary_factor", 0.25), "partial_rotary_factor is 0.25; kzero turns"},
      {{{"rope_type", "linear"}}, "factor is missing; model.rope_factor needs it"},
      {with(llama3, "low_freq_factor", "1"), "low_freq_factor is \"1\"; model.rope_low_freq_f"},
      {with(llama3, "original_max_position_embeddings", 0), "embeddings is 0; it must be above 0"},
      {{{"rope_type", "llama3"}, {"factor", 8.0}, {"original_max_position_embeddings", 16}},
       "low_freq_factor is missing; model.rope_low_freq_factor needs it"}};
  for (const auto& [scaling, expected] : cases) {
    const std::string text = rope_refusal({{"rope_scaling", scaling}});
    EXPECT_TRUE(contains(text, std::string("\n  rope_scaling.") +
                                   (expected[0] == 'e' ? "original_max_position_" : "") + expected))
        << expected << "\n"
        << text;
  }
  EXPECT_TRUE(contains(rope_refusal({{"rope_scaling", "linear"}}),
                       "rope_scaling is \"linear\"; kzero reads one object of plain values"));
  EXPECT_TRUE(contains(rope_refusal({{"rope_parameters", {{"full_attention", yarn}}}}),
                       "kzero reads one object of plain values, for all layers"));
  EXPECT_TRUE(contains(rope_refusal({{"rope_scaling", yarn}, {"rope_parameters", llama3}}),
                       "contradicts it"));
  EXPECT_TRUE(
      contains(rope_refusal({{"rope_scaling", yarn}, {"original_max_position_embeddings", 5}}),
               "original_max_position_embeddings is 5; rope_scaling.original_max_position_"));
  EXPECT_TRUE(
      contains(rope_refusal({{"rope_theta", 0}}), "rope_theta is 0; model.rope_theta must be"));
  EXPECT_TRUE(
      contains(rope_refusal({{"rope_theta", nullptr}}), "rope_theta is null; model.rope_theta"));
}

TEST(RopeConfig, WhatIsWrittenIsReadBackInEitherGeneration) {
  deck::Model model;
  model.family = deck::ModelFamily::llama;
  model.kv_heads = 4;
  model.head_dim = 32;
  model.feed_forward = 256;
  model.rope_theta = 5e5;
  for (const deck::RopeScaling scaling : {deck::RopeScaling::none, deck::RopeScaling::linear,
                                          deck::RopeScaling::llama3, deck::RopeScaling::yarn}) {
    model.rope_scaling = scaling;
    model.rope_factor = scaling == deck::RopeScaling::none ? 1 : 8;
    model.rope_original_sequence = scaling >= deck::RopeScaling::llama3 ? 64 : 0;
    model.rope_attention_factor = scaling == deck::RopeScaling::yarn ? 1.5 : 0;
    const json both = json::parse(config_text(model, Dtype::fp32, {}, ""));
    json now = both, former = both;
    now.erase("rope_theta");
    now.erase("rope_scaling");
    former.erase("rope_parameters");
    EXPECT_EQ(rope_of(both), rope_of(now));
    EXPECT_EQ(rope_of(both), rope_of(former));
    EXPECT_EQ(rope_of(both).at("model.rope_scaling"), deck::Value(std::string(name_of(scaling))));
    // transformers warns about integer factors and about floating-point lengths.
    if (both.at("rope_scaling").is_null()) continue;
    EXPECT_TRUE(both["rope_scaling"]["factor"].is_number_float());
    EXPECT_EQ(
        both["rope_scaling"].value("original_max_position_embeddings", json(1)).is_number_integer(),
        true);
  }
}

}  // namespace

}  // namespace kzero::convert
