// What a model brings: found in its folder or kept by its checkpoints, and written out again.
#include "convert/origin.hpp"

#include <nlohmann/json.hpp>

#include "convert/architecture.hpp"
#include "convert/config_export.hpp"
#include "convert/export.hpp"
#include "convert/tokenizer_files.hpp"
#include "convert/weight_files.hpp"
#include "deck/reader.hpp"
#include "unit/convert/models.hpp"

namespace kzero::convert {

namespace {

using Json = nlohmann::json;

std::string tokenizer_text(Index tokens, const char* end) {
  Json vocab = Json::object();
  for (Index i = 0; i + 1 < tokens; ++i) vocab[fmt::format("t{}", i)] = i;
  return Json{{"model", {{"vocab", vocab}}},
              {"added_tokens", {{{"content", end}, {"id", tokens - 1}}}}}
      .dump();
}

class OriginFolders : public FolderTest {
 protected:
  OriginFolders() : base(folder / "base"), data(folder / "data") {
    fs::create_directories(base / checkpoint::templates_name);
    fs::create_directory(data);
    store(base / config_name, R"({"model_type": "gpt2", "eos_token_id": 7, "my_key": {"a": [1]}})");
    store(base / generation_name, R"({"eos_token_id": [7, 8], "temperature": 0.6})");
    store(base / "tokenizer.json", tokenizer_text(9, "<e>"));
    store(base / "tokenizer_config.json", R"({"eos_token": "<e>"})");
    store(base / "chat_template.jinja", "{{ a }}");
    store(base / checkpoint::templates_name / "tool.jinja", "{{ b }}");
    store(base / "notes.txt", "not of a model");
  }

  deck::Config config(const std::string& model, const char* format = "llmc") const {
    return deck::read({"deck", fmt::format("[model]\nvocab = 256\n{}\n[data]\nfiles = ['{}']\n"
                                           "format = '{}'\n",
                                           model, (data / "t.bin").string(), format)},
                      {}, {0, deck::Purpose::plan});
  }
  std::string initial() const { return fmt::format("initial = '{}'", base.string()); }

  static std::vector<std::string> names(const Origin& origin) {
    std::vector<std::string> names;
    for (const checkpoint::OriginFile& file : origin.files) names.push_back(file.name);
    return names;
  }

  const fs::path base, data;
  const std::vector<std::string> all{"additional_chat_templates/tool.jinja",
                                     "chat_template.jinja",
                                     config_name,
                                     generation_name,
                                     "tokenizer.json",
                                     "tokenizer_config.json"};
};

TEST_F(OriginFolders, TheFolderOfTheModelBringsItsFiles) {
  for (const char* key : {"initial", "config"}) {
    const Origin origin = gather_origin(config(fmt::format("{} = '{}'", key, base.string())));
    EXPECT_EQ(names(origin), all) << key;
    EXPECT_EQ(origin.note, "");
    EXPECT_EQ(token_ids(origin), Json({{"eos_token_id", 7}}));
  }
  EXPECT_EQ(names(gather_origin(config(""), (base / weights_name).string())), all);
  EXPECT_TRUE(gather_origin(config("")).files.empty());
}

TEST_F(OriginFolders, AModelOfBytesHasNoTokenizer) {
  EXPECT_EQ(names(gather_origin(config(initial(), "bytes"))),
            (std::vector<std::string>{config_name, generation_name}));
  EXPECT_EQ(names(gather_origin(config("", "bytes"), base.string())), all);
}

TEST_F(OriginFolders, TheTokensOfTheDataAreThoseOfTheModel) {
  store(data / "tokenizer.json", tokenizer_text(9, "<e>"));
  EXPECT_EQ(names(gather_origin(config(initial()))), all);  // the same tokenizer
  store(data / "tokenizer.json", tokenizer_text(11, "<end>"));
  store(data / "tokenizer_config.json", R"({"eos_token": {"content": "<end>"}})");
  Origin origin = gather_origin(config(initial()));
  EXPECT_EQ(*origin.find("tokenizer.json"), tokenizer_text(11, "<end>"));
  EXPECT_EQ(origin.find("chat_template.jinja"), nullptr);
  EXPECT_EQ(token_ids(origin), Json({{"eos_token_id", 7}}));  // more tokens than before
  EXPECT_EQ(*gather_origin(config(initial()), base.string()).find("tokenizer.json"),
            tokenizer_text(9, "<e>"));
  fs::remove(base / "tokenizer.json");
  origin = gather_origin(config(initial()));
  EXPECT_EQ(token_ids(origin), Json({{"eos_token_id", 10}}));  // those of another vocabulary
  EXPECT_EQ(token_ids(gather_origin(config(""))), Json({{"eos_token_id", 10}}));
  store(data / "tokenizer.json", tokenizer_text(300, "<end>"));
  origin = gather_origin(config(""));
  EXPECT_TRUE(origin.files.empty());
  EXPECT_TRUE(contains(origin.note, "has tokens up to 299, but model.vocab = 256")) << origin.note;
}

TEST_F(OriginFolders, TheDataTellWhatEndsAnAnswer) {
  store(data / "tokenizer.json", tokenizer_text(9, "<e>"));
  store(data / "tokenizer_config.json", R"({"eos_token": "other"})");
  store(data / generation_name, R"({"eos_token_id": [5, 7], "top_k": 3})");
  store(data / chat_parts_name, "{}");
  const Origin origin = gather_origin(config(initial()));
  EXPECT_EQ(*origin.find(generation_name), R"({"eos_token_id": [5, 7], "top_k": 3})");
  EXPECT_EQ(Json::parse(*origin.find(config_name)).at("eos_token_id"), Json::array({5, 7}));
  EXPECT_EQ(*origin.find("tokenizer_config.json"), R"({"eos_token": "<e>"})");
  EXPECT_NE(origin.find(chat_parts_name), nullptr);
  EXPECT_EQ(token_ids(gather_origin(config(""))).at("eos_token_id"), Json::array({5, 7}));
}

TEST_F(OriginFolders, DamagedFilesAreErrors) {
  store(base / generation_name, "[");
  EXPECT_TRUE(contains(error_of(ExitCode::files, [&] { gather_origin(config(initial())); }),
                       "generation_config.json: is not a JSON object"));
  store(base / generation_name, "{}");
  fs::remove(base / "merges.txt");
  fs::create_symlink("nowhere", base / "merges.txt");
  EXPECT_TRUE(
      contains(error_of(ExitCode::files, [&] { gather_origin(config(initial())); }), "merges.txt"));
}

TEST_F(OriginFolders, AGivenTokenizerReplacesTheOther) {
  Origin origin = gather_origin(config(initial()));
  store(data / "tokenizer.json", tokenizer_text(200, "<end>"));
  store(data / "tokenizer_config.json", R"({"eos_token": "<end>"})");
  set_tokenizer(origin, data.string(), 256);
  EXPECT_EQ(names(origin), (std::vector<std::string>{config_name, generation_name, "tokenizer.json",
                                                     "tokenizer_config.json"}));
  EXPECT_EQ(token_ids(origin), Json({{"eos_token_id", 199}}));
  EXPECT_EQ(Json::parse(*origin.find(generation_name)),
            Json({{"eos_token_id", 199}, {"temperature", 0.6}}));
  EXPECT_TRUE(contains(
      error_of(ExitCode::files, [&] { set_tokenizer(origin, data.string(), 100); }), "up to 199"));
  EXPECT_TRUE(contains(
      error_of(ExitCode::files, [&] { set_tokenizer(origin, (folder / "none").string(), 100); }),
      "does not exist"));
}

TEST_F(OriginFolders, CheckpointsKeepItWhenTheFolderIsGone) {
  const grid::Group self = own_group(MPI_COMM_SELF);
  checkpoint::Found found = even_checkpoint(self, folder / "run");
  found.manifest.deck = fmt::format("[model]\n{}\n", initial());
  EXPECT_EQ(names(origin_of(found)), (std::vector<std::string>{config_name, generation_name}));
  checkpoint::update_origin(folder / "run", gather_origin(config(initial())));
  fs::rename(base, folder / "moved");
  EXPECT_EQ(names(origin_of(found)), all);
  fs::remove_all(folder / "run" / checkpoint::origin_name);
  EXPECT_TRUE(contains(origin_of(found).note, "there is no config.json in the folders of"));
  found.manifest.deck = "[modle]";
  EXPECT_TRUE(contains(origin_of(found).note, "table 'modle' is not known"));
}

class Renewed : public FolderTest {
 protected:
  /// The exported config.json of a reference model that came with these changes to its own.
  Json exported(const std::string& name, const Json& changes, Index sequence,
                Index more_tokens = 0) {
    const fs::path reference = fs::path(KZERO_TEST_DATA) / "reference" / name;
    came = Json::parse(load_config(reference).text);
    came.update(changes);
    deck::Model model;
    for (const deck::ImpliedValue& implied : architecture({config_name, came.dump()}))
      deck::set_model_value(*deck::find_key(implied.path), implied.value, model);
    if (sequence > 0) model.sequence = sequence;
    model.vocab += more_tokens;
    const Origin origin{.files = {{config_name, came.dump()}}};
    const std::string text = config_text(model, Dtype::bf16, origin, "checkpoint");
    EXPECT_TRUE(differences({config_name, text}, model).empty());
    return Json::parse(text);
  }
  Json came;
};

TEST_F(Renewed, EveryKeyThatKzeroDoesNotReadIsWrittenAgain) {
  const Json more{{"my_key", {{"deep", {1, 2.5, nullptr}}}},
                  {"attention_dropout", 0.25},
                  {"eos_token_id", {1, 2}},
                  {"max_position_embeddings", 256},
                  {"use_cache", false}};
  for (const char* name :
       {"llama_even", "llama_scaled", "qwen2", "qwen3", "mistral_window", "olmo2", "olmo3",
        "gemma3", "apertus", "smollm3", "granite", "qwen3_moe", "olmoe", "mixtral"}) {
    Json config = exported(name, more, 16);
    EXPECT_EQ(config.at("_written_by"), "kzero");
    EXPECT_EQ(config.at("dtype"), "bfloat16");
    for (const char* key : {"_written_by", "dtype", "torch_dtype"}) {
      config.erase(key);
      came.erase(key);
    }
    EXPECT_EQ(config, came) << name;
  }
}

TEST_F(Renewed, OnlyALongerTrainingChangesTheContext) {
  for (const auto& [sequence, context] : {std::pair(16, 256), std::pair(512, 512)})
    EXPECT_EQ(exported("qwen3", {{"max_position_embeddings", 256}}, sequence)
                  .at("max_position_embeddings"),
              context);
  // Its scaling begins at the former max_position_embeddings, which must not move with it.
  const Json scaled{{"max_position_embeddings", 64},
                    {"rope_parameters", nullptr},
                    {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 2.0}}}};
  const Json config = exported("llama_even", scaled, 512);
  EXPECT_EQ(config.at("max_position_embeddings"), 512);
  EXPECT_EQ(config.at("rope_parameters").at("original_max_position_embeddings"), 64);
}

TEST_F(Renewed, ClassAndNumberOfTokensAreThoseOfTheModel) {
  Json config = exported("qwen3", {{"architectures", {"Qwen3Model"}}}, 16, 3);
  EXPECT_EQ(config.at("architectures"), Json::array({"Qwen3ForCausalLM"}));
  EXPECT_EQ(config.at("vocab_size"), came.at("vocab_size").get<Index>() + 3);
  config = exported("llama_even",
                    {{"architectures", {"MistralForCausalLM"}},
                     {"model_type", "mistral"},
                     {"sliding_window", nullptr}},
                    16);
  EXPECT_EQ(config.at("architectures"), Json::array({"MistralForCausalLM"}));
}

TEST_F(Renewed, TheTextPartOfAModelWithImagesIsAModelByItself) {
  const Json part = Json::parse(load_config(fs::path(KZERO_TEST_DATA) / "reference/gemma3").text);
  Json all{{"model_type", "gemma3"},   {"architectures", {"Gemma3ForConditionalGeneration"}},
           {"eos_token_id", {1, 106}}, {"image_token_index", 7},
           {"text_config", part},      {"vision_config", {{"hidden_size", 8}}}};
  all["text_config"].erase("architectures");
  all["text_config"]["my_key"] = 1;
  deck::Model model;
  for (const deck::ImpliedValue& implied : architecture({config_name, all.dump()}))
    deck::set_model_value(*deck::find_key(implied.path), implied.value, model);
  const Origin origin{.files = {{config_name, all.dump()}}};
  const Json config = Json::parse(config_text(model, Dtype::fp32, origin, "checkpoint"));
  EXPECT_EQ(config.at("architectures"), Json::array({"Gemma3ForCausalLM"}));
  EXPECT_EQ(config.at("model_type"), "gemma3_text");
  EXPECT_EQ(config.at("eos_token_id"), Json::array({1, 106}));
  EXPECT_EQ(config.at("my_key"), 1);
  EXPECT_EQ(config.at("layer_types"), part.at("layer_types"));
  EXPECT_EQ(config.at("_written_by"), "kzero");
  for (const char* key : {"text_config", "vision_config", "image_token_index"})
    EXPECT_FALSE(config.contains(key)) << key;
  EXPECT_TRUE(differences({config_name, config.dump()}, model).empty());
}

TEST_F(Renewed, TheKeysOfAnotherModelAreLeftOut) {
  const Origin origin{.files = {{config_name, R"({"model_type": "gpt2", "n_head": 99, "my": 1,
                                                  "eos_token_id": 3})"}}};
  const Json config = Json::parse(config_text(even_model(), Dtype::fp32, origin, "checkpoint"));
  EXPECT_FALSE(config.contains("my"));
  EXPECT_EQ(config.at("n_head"), 4);
  EXPECT_EQ(config.at("eos_token_id"), 3);
}

TEST_F(Renewed, SettingsOfGenerationComeBack) {
  const deck::Model model = even_model();
  EXPECT_EQ(Json::parse(generation_text(model, {})).at("eos_token_id"), nullptr);
  EXPECT_EQ(generation_text(model, {.files = {{config_name, "{}"}}}), "");
  const Origin origin{.files = {{config_name, "{}"}, {generation_name, R"({"top_p": 0.8})"}}};
  EXPECT_EQ(Json::parse(generation_text(model, origin)),
            Json({{"_written_by", "kzero"}, {"top_p", 0.8}}));
}

}  // namespace

}  // namespace kzero::convert
