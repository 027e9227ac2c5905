// config.json next to the weights. Settings that change the function of the weights are refused by
// name.
#include "convert/config_export.hpp"

#include <nlohmann/json.hpp>

#include "convert/weight_files.hpp"
#include "unit/convert/models.hpp"

namespace kzero::convert {

namespace {

using nlohmann::json;

class Gpt2Config : public FolderTest {
 protected:
  Gpt2Config() {
    fs::copy_file(reference("even"), folder / weights_name);
    config = json::parse(config_text(even_model(), Dtype::fp32, {}, ""));
  }

  std::string error(const deck::Model& model = even_model()) {
    store(folder / config_name, config.dump());
    return error_of(ExitCode::files, [&] { weights_of(folder / weights_name, model); });
  }

  /// The differences that the error lists after this change to the file.
  std::string error_with(const std::string& key, const json& value) {
    const json before = config;
    config[key] = value;
    std::string text = error();
    config = before;
    EXPECT_TRUE(text.starts_with((folder / config_name).string() + ": ")) << text;
    return text;
  }

  void expect_good(const std::string& key, const json& value) {
    const json before = config;
    config[key] = value;
    store(folder / config_name, config.dump());
    EXPECT_NO_THROW(weights_of(folder, even_model())) << key << " " << value;
    config = before;
  }

  json config;
};

TEST_F(Gpt2Config, EveryKeyThatChangesTheFunctionIsCompared) {
  const std::tuple<const char*, json, const char*> cases[] = {
      {"activation_function", "relu",
       "\n  activation_function is \"relu\"; kzero computes gelu_new, gelu_pytorch_tanh, "
       "gelu_fast"},
      {"activation_function", "gelu", "\n  activation_function is \"gelu\"; kzero computes"},
      {"n_head", 8, "\n  n_head is 8, model.heads is 4\n"},
      {"num_attention_heads", 8,
       "\n  num_attention_heads is 8; it means the same as n_head, which is 4"},
      {"n_head", "4", "\n  n_head is \"4\"; model.heads must be an integer from 1 to 10000"},
      {"n_layer", 3, "\n  n_layer is 3, model.layers is 2\n"},
      {"n_embd", 65, "\n  n_embd is 65, model.hidden is 64\n"},
      {"n_positions", 1e300, "\n  n_positions is 1e+300; model.sequence must be an integer from"},
      {"vocab_size", true, "\n  vocab_size is true; model.vocab must be an integer"},
      {"n_inner", 100, "\n  n_inner is 100, model.feed_forward is 256\n"},
      {"layer_norm_epsilon", 1e-6, "\n  layer_norm_epsilon is 1e-06, model.norm_eps is 1e-05"},
      {"scale_attn_weights", false, "\n  scale_attn_weights is false; kzero always divides"},
      {"scale_attn_weights", nullptr, "\n  scale_attn_weights is null; kzero always divides"},
      {"scale_attn_by_inverse_layer_idx", true, "\n  scale_attn_by_inverse_layer_idx is true; "},
      {"add_cross_attention", true, "\n  add_cross_attention is true; kzero has no"},
      {"tie_word_embeddings", false,
       "\n  tie_word_embeddings is false, model.tied_embeddings is true\n"},
      {"model_type", "gptj", ": model_type is \"gptj\"; kzero reads gpt2, llama, "},
      {"model_type", "llama", ": architectures is [\"GPT2LMHeadModel\"], which contradicts "},
      {"n_inner", 0, "\n  n_inner is 0; it must be above 0"},
      {"n_layer", -1, "\n  n_layer is -1; it must be above 0"},
      {"n_layer", std::uint64_t{1} << 63U, "\n  n_layer is 9223372036854775808; model.layers must"},
      {"n_layer", 1.5, "\n  n_layer is 1.5; model.layers must be an integer"},
      {"n_layer", json::array({1}), "\n  n_layer is [1]; model.layers must be an integer"},
      {"n_head", nullptr, "\n  n_head is null; model.heads must be an integer"},
      {"layer_norm_epsilon", 0, "\n  layer_norm_epsilon is 0; model.norm_eps must be "},
      {"quantization_config", json::object(), "\n  quantization_config is {}; kzero reads"},
      {"model_type", 2, ": model_type is 2; kzero reads gpt2, llama, "},
      {"architectures", json::array({"GPT2ForSequenceClassification"}),
       ": architectures is [\"GPT2ForSequenceClassification\"]; kzero reads one of "
       "GPT2LMHeadModel, GPT2Model, "},
      {"architectures", json::array(), ": architectures is []"},
      {"architectures", "\x1b[2J", ": architectures is \"\\u001b[2J\""}};
  for (const auto& [key, value, expected] : cases) {
    const std::string text = error_with(key, value);
    EXPECT_TRUE(contains(text, expected)) << expected << "\n" << text;
  }
}

TEST_F(Gpt2Config, WhatComputesTheSameIsAccepted) {
  for (const auto* name : {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"})
    expect_good("activation_function", name);
  expect_good("n_inner", nullptr);
  expect_good("reorder_and_upcast_attn", true);  // affects only rounding
  expect_good("attn_pdrop", 0.1);                // affects only training
  expect_good("architectures", nullptr);
  expect_good("architectures", json::array({"GPT2Model"}));
  expect_good("transformers_version", "4.0");
  config.erase("model_type");
  expect_good("n_ctx", 7);
}

TEST_F(Gpt2Config, AMissingKeyMeansWhatHuggingFaceTakesItToMean) {
  config.erase("n_head");
  config.erase("vocab_size");
  EXPECT_TRUE(contains(error(),
                       "\n  n_head is missing, which means 12, model.heads is 4\n"
                       "  vocab_size is missing, which means 50257, model.vocab is 256\n"));
  config["num_attention_heads"] = 4;  // an alternative name
  config["vocab_size"] = 256;
  for (const auto* key : {"activation_function", "layer_norm_epsilon", "scale_attn_weights",
                          "tie_word_embeddings", "scale_attn_by_inverse_layer_idx", "n_inner"})
    config.erase(key);
  expect_good("x", 1);
  deck::Model narrow = even_model();
  narrow.feed_forward = 128;
  EXPECT_TRUE(contains(error(narrow), "n_inner is missing, which means 256, "));
  config.erase("model_type");
  config.erase("architectures");
  EXPECT_TRUE(contains(error(), "names neither \"model_type\" nor \"architectures\""));
}

TEST_F(Gpt2Config, AMalformedFileIsOneError) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"),
        "{\"x\":" + deep + "}", std::string("{\"model_type\":\"gpt2\"}{}")}) {
    store(folder / config_name, text);
    EXPECT_EQ(error_of(ExitCode::files, [&] { weights_of(folder, even_model()); }),
              (folder / config_name).string() + ": is not a JSON object");
  }
  fs::resize_file(folder / config_name, std::uintmax_t{1} << 40);  // a sparse file
  EXPECT_TRUE(contains(error_of(ExitCode::files, [&] { weights_of(folder, even_model()); }),
                       "has 1.00 TiB; a file of its kind has 1.00 MiB at most"));
}

TEST_F(Gpt2Config, WithoutOneANoteSaysWhatWasNotCompared) {
  const std::string note = weights_of(folder / weights_name, even_model()).note();
  EXPECT_TRUE(contains(note, "no config.json was found for " + (folder / weights_name).string()));
  EXPECT_TRUE(contains(note, "number of heads"));
  expect_good("layer_norm_epsilon", 9.999999747378752e-06);  // the float32 nearest to 1e-5, in full
}

TEST(Gpt2ConfigText, TheEndOfTextOfGpt2sOwnVocabularyIsWritten) {
  deck::Model model = even_model();
  model.vocab = 50257;
  const json config = json::parse(config_text(model, Dtype::fp32, {}, ""));
  EXPECT_EQ(config.at("bos_token_id"), 50256);
  EXPECT_EQ(config.at("eos_token_id"), 50256);
}

}  // namespace

}  // namespace kzero::convert
