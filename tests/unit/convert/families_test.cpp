// The reference folders written by transformers, one per class. They are read unchanged and written
// back with the same bytes.
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "convert/architecture.hpp"
#include "convert/config_export.hpp"
#include "convert/names.hpp"
#include "deck/architecture.hpp"
#include "deck/reader.hpp"
#include "unit/convert/models.hpp"

namespace kzero::convert {

namespace {

fs::path folder_of_case(const std::string& name) {
  return fs::path(KZERO_TEST_DATA) / "reference" / name;
}

/// The model of a deck that contains only this model.config.
deck::Model model_by_config(const fs::path& config) {
  return deck::read({"deck", "[data]\nformat = \"llmc\""}, {"model.config=" + config.string()}, {},
                    read_architecture)
      .model;
}

/// Returns {name: (dtype, shape, bytes)} of the weight files in a folder.
std::map<std::string, std::tuple<std::string, std::vector<Index>, std::string>> tensors_in(
    const fs::path& folder) {
  std::map<std::string, std::tuple<std::string, std::vector<Index>, std::string>> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    const SafetensorsFile file(entry.path());
    for (const Tensor& tensor : file.tensors()) {
      found[tensor.name] = {tensor.dtype, tensor.shape,
                            bytes.substr(tensor.begin, tensor.end - tensor.begin)};
    }
  }
  return found;
}

/// Every key of `config` that affects the computation, as in a deck.
std::map<std::string, deck::Value> meaning_of(const fs::path& config) {
  std::map<std::string, deck::Value> found;
  for (const deck::ImpliedValue& one : read_architecture(config.string()))
    found[one.path] = one.value;
  return found;
}

class Families : public FolderTest, public testing::WithParamInterface<const char*> {
 protected:
  Families()
      : self(own_group(MPI_COMM_SELF)),
        from(folder_of_case(GetParam())),
        model(model_by_config(from)) {}

  checkpoint::Found imported(const fs::path& path, const char* to) const {
    return checkpoint_of(self, path, model, folder / to);
  }

  grid::Group self;
  fs::path from;
  deck::Model model;
};

INSTANTIATE_TEST_SUITE_P(All, Families,
                         testing::Values("llama_even", "llama_scaled", "qwen2", "qwen3",
                                         "mistral_window", "smollm3", "granite", "granite_tied",
                                         "olmo2", "olmo3", "gemma3", "apertus", "qwen3_moe",
                                         "olmoe", "mixtral", "qwen2_moe", "glm4_moe"),
                         [](const auto& test) { return std::string(test.param); });

TEST(TensorNames, OfAFamilyWithoutAnyAreRefused) {
  const auto ask = [] { names_of(static_cast<deck::ModelFamily>(99)); };
  EXPECT_TRUE(contains(error_of(ExitCode::files, ask), "kzero has no names for this family's"));
  EXPECT_EQ(names_of(deck::ModelFamily::gpt2).embedding, "wte.weight");
  EXPECT_EQ(names_of(deck::ModelFamily::llama).embedding, "embed_tokens.weight");
}

TEST_P(Families, ThereAndBackIsTheSameModel) {
  const auto found = imported(from, "run");
  EXPECT_EQ(weights_of(from, model).note(), "");
  const fs::path to = folder / "out";
  export_weights(found, export_target(to));
  EXPECT_EQ(tensors_in(to), tensors_in(from));
  EXPECT_EQ(meaning_of(to), meaning_of(from));
  std::ifstream ours(to / "config.json"), theirs(from / "config.json");
  const auto config = nlohmann::json::parse(ours), original = nlohmann::json::parse(theirs);
  for (const auto& [key, value] : original.items()) {
    const bool is_of_writer =
        key == "transformers_version" || key == "use_cache" || key == "pretraining_tp" ||
        key == "max_window_layers" || key == "initializer_range" ||
        key == "no_rope_layer_interval" || key == "_sliding_window_pattern" ||
        (key == "layer_types" && model.window == 0) ||
        // the width of layers without experts, which it lacks
        (key == "intermediate_size" && config.contains("moe_intermediate_size")) ||
        (key == "sliding_window" && value == 0) ||  // as null
        key.ends_with("_token_id");                 // null if they have no origin
    if (is_of_writer) continue;
    EXPECT_EQ(config.value(key, nlohmann::json("missing")), value) << key;
  }
}

TEST_P(Families, SeveralFilesAreReadAndWritten) {
  const auto found = imported(from, "run");
  export_weights(found, export_target(folder / "set"), {.shard_bytes = 20'000});
  EXPECT_TRUE(fs::exists(folder / "set" / "model.safetensors.index.json"));
  EXPECT_EQ(tensors_in(folder / "set"), tensors_in(from));
  const auto again = imported(folder / "set", "again");
  export_weights(again, export_target(folder / "one"));
  EXPECT_EQ(tensors_in(folder / "one"), tensors_in(from));
}

TEST_P(Families, SixteenBitsComeBackAsTheyAre) {
  const auto found = imported(from, "run");
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
    const std::string name(name_of(dtype));
    export_weights(found, export_target(folder / name), {.dtype = dtype});
    const auto again = imported(folder / name, ("run_" + name).c_str());
    export_weights(again, export_target(folder / (name + "_again")), {.dtype = dtype});
    EXPECT_EQ(tensors_in(folder / name), tensors_in(folder / (name + "_again")));
  }
}

TEST_P(Families, FilesOfTheTransformerAloneAreUnderstood) {
  Tensors tensors(from / "model.safetensors");
  for (auto& [name, shape] : tensors.shapes)
    if (name.starts_with("model.")) name = name.substr(6);
  tensors.add("layers.0.self_attn.rotary_emb.inv_freq", {4}, std::vector<float>(4));
  if (model.tied_embeddings) {
    tensors.add("lm_head.weight", {model.vocab, model.hidden},
                tensors.values[tensors.at("embed_tokens.weight")]);
  }
  tensors.write(folder / "plain.safetensors");
  const Weights weights = weights_of(folder / "plain.safetensors", model);
  EXPECT_TRUE(contains(weights.note(), "rotary positions and their scaling")) << weights.note();
  const SafetensorsFile original(from / "model.safetensors");
  const TensorNames& names = names_of(model.family);
  for (const Tensor& tensor : original.tensors()) {
    if (names.constant(names.plain(tensor.name)) != nullptr) continue;
    std::vector<float> values(tensor.elements());
    weights.load_range(tensor.name, {0, tensor.elements()}, values);
    EXPECT_EQ(values, values_of(original, tensor.name)) << tensor.name;
  }
}

std::string other_choice(const deck::Key& key, const std::string& name) {
  if (key.path == "model.family") return "gpt2";
  if (key.path == "model.router_score") return name == "softmax" ? "sigmoid" : "softmax";
  return name == "none" ? "linear" : "none";
}

TEST_P(Families, EveryBindingKeyIsComparedWithTheWeights) {
  for (const deck::ImpliedValue& implied : read_architecture(from.string())) {
    deck::Model other = model;
    const deck::Key& key = *deck::find_key(implied.path);
    deck::Value value = implied.value;
    if (auto* count = std::get_if<Index>(&value)) *count += implied.may_grow ? -1 : 1;
    if (auto* number = std::get_if<double>(&value)) *number = *number * 2 + 3;
    if (auto* flag = std::get_if<bool>(&value)) *flag = !*flag;
    if (auto* name = std::get_if<std::string>(&value)) *name = other_choice(key, *name);
    deck::set_model_value(key, value, other);
    if (!implied.is_binding) {
      EXPECT_NO_THROW(require_same_function(from / "config.json", other)) << key.path;
      continue;
    }
    const std::string text =
        error_of(ExitCode::files, [&] { require_same_function(from / "config.json", other); });
    EXPECT_TRUE(contains(text, ", " + key.path + " is " + as_toml(key, value) + "\n")) << text;
  }
}

TEST_P(Families, AScaleMayBeWrittenOut) {
  deck::Model written = deck::with_default_scales(model);
  const double scale = 1 / std::sqrt(static_cast<double>(model.head_dim));
  if (written.attention_scale == 0 && is_rotary(model)) written.attention_scale = scale;
  if (written.embedding_scale == 0 && model.family != deck::ModelFamily::gemma3 && is_rotary(model))
    written.embedding_scale = 1;
  EXPECT_NO_THROW(require_same_function(from / "config.json", written));
  EXPECT_TRUE(deck::architecture_changes(model, written).empty());
}

/// The error of an export of a reference case's model after a change.
std::string export_error(const char* name, const std::function<void(deck::Model&)>& change) {
  deck::Model model = model_by_config(folder_of_case(name));
  change(model);
  return error_of(ExitCode::files, [&] { config_text(model, Dtype::fp32, {}, "step"); });
}

TEST(FamilyExport, WhatNoClassComputesIsRefusedByItsKeys) {
  EXPECT_EQ(export_error("qwen2", [](deck::Model& model) { model.qk_norm = true; }),
            "step: no class of transformers that kzero writes computes this model:\n"
            "  LlamaForCausalLM lacks model.qkv_bias = true, model.qk_norm = true\n"
            "  MistralForCausalLM lacks model.qkv_bias = true, model.qk_norm = true\n"
            "  Qwen2ForCausalLM lacks model.qk_norm = true\n"
            "  Qwen3ForCausalLM lacks model.qkv_bias = true\n"
            "  SmolLM3ForCausalLM lacks model.qkv_bias = true, model.qk_norm = true\n"
            "  GraniteForCausalLM lacks model.qkv_bias = true, model.qk_norm = true");
  const std::tuple<const char*, std::function<void(deck::Model&)>, const char*> cases[] = {
      {"smollm3", [](deck::Model& model) { model.window = 5; },
       "\n  MistralForCausalLM lacks model.no_rope_every = 4\n"},
      {"granite", [](deck::Model& model) { model.no_rope_every = 2; },
       "\n  GraniteForCausalLM lacks model.no_rope_every = 2"},
      {"mistral_window", [](deck::Model& model) { model.full_attention_every = 2; },
       "\n  MistralForCausalLM lacks model.full_attention_every = 2\n"},
      {"olmo2", [](deck::Model& model) { model.logit_divisor = 2; },
       "\n  Olmo3ForCausalLM lacks model.logit_divisor = 2.0"},
      {"olmo3", [](deck::Model& model) { model.window_rope_theta = 7; },
       "\n  Olmo3ForCausalLM lacks model.window_rope_theta = 7 unlike model.rope_theta = 500000"},
      {"olmo3", [](deck::Model& model) { model.rope_scaling = deck::RopeScaling::linear; },
       "\n  Olmo3ForCausalLM lacks model.rope_scaling = \"linear\" in layers with model.window"},
      {"gemma3", [](deck::Model& model) { model.attention_scale = 0.3; },
       "\n  Gemma3ForCausalLM lacks model.attention_scale = 0.3, which is not 1 / sqrt(an "
       "integer)"},
      {"gemma3", [](deck::Model& model) { model.hidden = 50; },
       "\n  Gemma3ForCausalLM lacks model.hidden = 50 with model.heads = 4, which does not divide"},
      {"gemma3", [](deck::Model& model) { model.embedding_scale = 3; },
       "\n  Gemma3ForCausalLM lacks model.embedding_scale = 3.0"},
      {"apertus", [](deck::Model& model) { model.window = 5; },
       "\n  ApertusForCausalLM lacks model.window = 5"}};
  for (const auto& [name, change, expected] : cases) {
    const std::string text = export_error(name, change);
    EXPECT_TRUE(contains(text, expected)) << name << ": " << text;
  }
}

TEST(FamilyExport, EachClassHasItsOwnKeys) {
  const auto config_of = [](const char* name) {
    return nlohmann::json::parse(
        config_text(model_by_config(folder_of_case(name)), Dtype::fp32, {}, ""));
  };
  for (const auto& [name, type] :
       {std::pair("olmo2", "Olmo2"), std::pair("olmo3", "Olmo3"), std::pair("gemma3", "Gemma3"),
        std::pair("apertus", "Apertus"), std::pair("smollm3", "SmolLM3"),
        std::pair("granite", "Granite")}) {
    const auto config = config_of(name);
    EXPECT_EQ(config["architectures"], nlohmann::json::array({std::string(type) + "ForCausalLM"}));
    const fs::path from = folder_of_case(name);
    std::map<std::string, deck::Value> written;
    for (const auto& one : architecture({"config.json", config.dump()}))
      written[one.path] = one.value;
    EXPECT_EQ(written, meaning_of(from)) << name;
    nlohmann::json former = config;  // transformers 4 does not read it
    former.erase("rope_parameters");
    std::map<std::string, deck::Value> of_former;
    for (const auto& one : architecture({"config.json", former.dump()}))
      of_former[one.path] = one.value;
    EXPECT_EQ(of_former, meaning_of(from)) << name;
  }
  EXPECT_EQ(config_of("gemma3")["rope_local_base_freq"], 10000.0);
  EXPECT_EQ(config_of("gemma3")["query_pre_attn_scalar"], 20);
  EXPECT_EQ(config_of("smollm3")["no_rope_layers"], nlohmann::json::array({1, 1, 1, 0, 1}));
}

// The model is also computed by a class that scales rotary positions.
TEST(FamilyExport, AScaledOlmo2IsAnOlmo3WithoutWindows) {
  deck::Model model = model_by_config(folder_of_case("olmo2"));
  model.rope_scaling = deck::RopeScaling::linear;
  model.rope_factor = 4;
  const auto config = nlohmann::json::parse(config_text(model, Dtype::fp32, {}, ""));
  EXPECT_EQ(config["architectures"], nlohmann::json::array({"Olmo3ForCausalLM"}));
  EXPECT_TRUE(differences({"config.json", config.dump()}, model).empty());
}

TEST(LlamaExport, AWidthThatIsNoMultipleOfTheHeadsIsMistrals) {
  deck::Model model = model_by_config(folder_of_case("llama_even"));
  model.hidden = 66;
  const auto config = nlohmann::json::parse(config_text(model, Dtype::fp32, {}, ""));
  EXPECT_EQ(config["architectures"], nlohmann::json::array({"MistralForCausalLM"}));
  EXPECT_TRUE(config.at("sliding_window").is_null());
  EXPECT_EQ(config["head_dim"], 16);
}

TEST(LlamaExport, AWindowIsMistrals) {
  const deck::Model model = model_by_config(folder_of_case("mistral_window"));
  EXPECT_EQ(model.window, 7);
  const auto config = nlohmann::json::parse(config_text(model, Dtype::fp32, {}, ""));
  EXPECT_EQ(config["architectures"], nlohmann::json::array({"MistralForCausalLM"}));
  EXPECT_EQ(config["sliding_window"], 7);
}

}  // namespace

}  // namespace kzero::convert
