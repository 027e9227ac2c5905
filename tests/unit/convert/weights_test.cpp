// Weights from Hugging Face files into checkpoints and back.
#include "convert/weights.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "checkpoint/reader.hpp"
#include "convert/architecture.hpp"
#include "deck/architecture.hpp"
#include "unit/convert/models.hpp"

namespace kzero::convert {

namespace {

class WeightsTest : public FolderTest {
 protected:
  fs::path changed(const Tensors& tensors) const {
    fs::path path = folder / "changed.safetensors";
    tensors.write(path);
    return path;
  }
  std::string misfit(const Tensors& tensors, const deck::Model& model) const {
    const auto path = changed(tensors);
    std::string text = error_of(ExitCode::files, [&] { weights_of(path, model); });
    EXPECT_TRUE(contains(text, path.string())) << text;
    return text;
  }
};

TEST_F(WeightsTest, RangesAreThoseOfTheFile) {
  const Weights weights = weights_of(reference("even"), even_model());
  const auto whole = values_of(SafetensorsFile(reference("even")), "h.1.mlp.c_fc.weight");
  std::vector<float> part(1001);
  weights.load_range("h.1.mlp.c_fc.weight", {77, 1001}, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 77));
}

TEST_F(WeightsTest, PrefixMasksAndATiedHeadAreUnderstood) {
  Tensors tensors(reference("even"));
  for (auto& [name, shape] : tensors.shapes) name = "transformer." + name;
  tensors.add("transformer.h.0.attn.bias", {1, 1, 2, 2}, {1, 0, 1, 1});
  tensors.add("h.1.attn.masked_bias", {}, {-1e4F});
  tensors.add("lm_head.weight", {256, 64}, tensors.values[tensors.at("transformer.wte.weight")]);
  const Weights weights = weights_of(changed(tensors), even_model());
  std::vector<float> bias(64);
  weights.load_range("ln_f.bias", {0, 64}, bias);
  EXPECT_EQ(bias, values_of(SafetensorsFile(reference("even")), "ln_f.bias"));
}

/// The model of a reference case, and a copy of its tensors.
deck::Model model_of_case(const std::string& name) {
  deck::Model model;
  for (const deck::ImpliedValue& implied :
       read_architecture((fs::path(KZERO_TEST_DATA) / "reference" / name).string()))
    deck::set_model_value(*deck::find_key(implied.path), implied.value, model);
  return model;
}

Tensors tensors_of_case(const std::string& name) {
  return Tensors(fs::path(KZERO_TEST_DATA) / "reference" / name / "model.safetensors");
}

TEST_F(WeightsTest, TheTextPartOfAModelWithImagesIsUnderstood) {
  const deck::Model model = model_of_case("gemma3");
  const Tensors original = tensors_of_case("gemma3");
  constexpr const char* norm = "model.layers.1.self_attn.q_norm.weight";
  for (const auto& [text, head, images] :
       {std::tuple("language_model.model.", "language_model.lm_head.weight", ""),
        std::tuple("model.language_model.", "lm_head.weight", "model.")}) {
    Tensors tensors = original;
    for (auto& [name, shape] : tensors.shapes) name = text + name.substr(6);
    tensors.add(head, {model.vocab, model.hidden},
                original.values[original.at("model.embed_tokens.weight")]);
    for (const char* name : {"vision_tower.vision_model.embeddings.patch_embedding.weight",
                             "multi_modal_projector.mm_soft_emb_norm.weight"})
      tensors.add(std::string(images) + name, {2}, {1, 2});
    const Weights weights = weights_of(changed(tensors), model);
    EXPECT_TRUE(contains(weights.note(), ": 2 tensors that are not for text were left out"))
        << weights.note();
    std::vector<float> values(16);
    weights.load_range(norm, {0, 16}, values);
    EXPECT_EQ(values, original.values[original.at(norm)]);
  }
  Tensors tensors = tensors_of_case("olmo2");  // which has no class with images
  tensors.add("vision_tower.x", {1}, {1});
  EXPECT_TRUE(contains(misfit(tensors, model_of_case("olmo2")), "vision_tower.x is not a param"));
}

TEST_F(WeightsTest, ExpertsAndRoutersMustBeThere) {
  const deck::Model model = model_of_case("mixtral");
  const Tensors original = tensors_of_case("mixtral");
  const std::string experts = "model.layers.1.block_sparse_moe.experts.";
  const std::string router = "model.layers.0.block_sparse_moe.gate.weight";
  Tensors tensors = original;
  tensors.shapes[tensors.at(experts + "3.w3.weight")].first = experts + "5.w3.weight";
  std::string text = misfit(tensors, model);
  EXPECT_TRUE(contains(text, experts + "3.w3.weight [64, 48] is missing")) << text;
  EXPECT_TRUE(contains(text, "experts.5.w3.weight is not a parameter of this model")) << text;
  tensors = original;
  tensors.shapes[tensors.at(experts + "0.w2.weight")].second = {64, 48};
  tensors.shapes[tensors.at(router)].second = {48, 5};
  text = misfit(tensors, model);
  EXPECT_TRUE(contains(text, experts + "0.w2.weight [48, 64] has shape [64, 48] in the file"));
  EXPECT_TRUE(contains(text, router + " [5, 48] has shape [48, 5] in the file")) << text;
  tensors = original;
  tensors.values[tensors.at(router)][77] = std::numeric_limits<float>::quiet_NaN();
  const Weights weights = weights_of(changed(tensors), model);
  std::vector<float> values(5 * 48);
  text = error_of(ExitCode::files, [&] { weights.load_range(router, {0, 240}, values); });
  EXPECT_TRUE(contains(text, router + " [1, 29] is NaN; weights have to be finite numbers"))
      << text;
}

TEST_F(WeightsTest, ExpertsThatAreJoinedAreOneProblem) {
  Tensors tensors = tensors_of_case("qwen3_moe");
  tensors.shapes[tensors.at("model.layers.1.mlp.experts.0.up_proj.weight")].first =
      "model.layers.1.mlp.experts.gate_up_proj";
  const std::string text = misfit(tensors, model_of_case("qwen3_moe"));
  EXPECT_TRUE(contains(text, "layers.1.mlp.experts.gate_up_proj joins the experts of a layer, "));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
}

TEST_F(WeightsTest, ConstantsThatAreNotTrainedAreCompared) {
  const deck::Model model = model_of_case("apertus");
  constexpr const char* beta = "model.layers.1.mlp.act_fn.beta";
  constexpr const char* eps = "model.layers.0.mlp.act_fn.eps";
  Tensors tensors = tensors_of_case("apertus");
  EXPECT_EQ(tensors.values[tensors.at(beta)], std::vector<float>{0.5F});
  for (const float rounded : {-9.98377799987793e-07F, -1.0132789611816406e-06F}) {  // bf16, fp16
    tensors.values[tensors.at(eps)] = {rounded};
    EXPECT_NO_THROW(weights_of(changed(tensors), model)) << rounded;
  }
  tensors.values[tensors.at(beta)] = {0.75F};
  tensors.values[tensors.at(eps)] = {0};
  const std::string text = misfit(tensors, model);
  EXPECT_TRUE(contains(text, std::string(beta) + " is 0.75; kzero computes with 0.5")) << text;
  EXPECT_TRUE(contains(text, std::string(eps) + " is 0; kzero computes with -1e-06")) << text;
  tensors = tensors_of_case("apertus");
  tensors.shapes[tensors.at(beta)].second = {2};
  tensors.values[tensors.at(beta)] = {0.5F, 0.5F};
  EXPECT_TRUE(contains(misfit(tensors, model), "beta has shape [2]; it must be one number"));
}

TEST_F(WeightsTest, NewTokensStartAsTheMeanOfTheOthers) {
  deck::Model model = even_model();
  model.vocab = 258;
  const auto path = changed(Tensors(reference("even")));
  const Weights weights = weights_of(path, model);
  EXPECT_EQ(weights.new_rows(), 2);
  EXPECT_TRUE(contains(weights.note(), "has 256 tokens and model.vocab is 258")) << weights.note();
  const auto table = values_of(SafetensorsFile(path), "wte.weight");
  std::vector<double> mean(64);
  for (std::size_t i = 0; i < table.size(); ++i) mean[i % 64] += table[i] / 256.0;
  std::vector<float> part(70);  // the end of the last row, the first new one, the begin of the last
  weights.load_range("wte.weight", {256 * 64 - 3, 70}, part);
  EXPECT_TRUE(std::equal(part.begin(), part.begin() + 3, table.end() - 3));
  for (std::size_t i = 3; i < part.size(); ++i) EXPECT_NEAR(part[i], mean[(i - 3) % 64], 1e-6);
  std::vector<float> one(1);  // the same value by another division into ranges
  weights.load_range("wte.weight", {257 * 64 + 2, 1}, one);
  EXPECT_EQ(one.front(), part[3 + 2]);
}

TEST_F(WeightsTest, OtherTablesDoNotGrow) {
  deck::Model model = even_model();
  model.sequence = 33;
  EXPECT_TRUE(contains(misfit(Tensors(reference("even")), model), "wpe.weight [33, 64]"));
  model = even_model();
  model.vocab = 255;
  EXPECT_TRUE(contains(misfit(Tensors(reference("even")), model), "wte.weight [255, 64]"));
}

TEST_F(WeightsTest, EveryMisfitIsNamed) {
  Tensors tensors(reference("even"));
  tensors.shapes[tensors.at("h.0.ln_1.bias")].first = "h.0.ln1.bias";
  tensors.shapes[tensors.at("h.1.mlp.c_fc.weight")].second = {256, 64};
  const std::string text = misfit(tensors, even_model());
  EXPECT_TRUE(contains(text, "h.0.ln_1.bias [64] is missing")) << text;
  EXPECT_TRUE(contains(text, "h.0.ln1.bias is not a parameter of this model")) << text;
  EXPECT_TRUE(contains(text, "h.1.mlp.c_fc.weight [64, 256] has shape [256, 64] in the file"))
      << text;
}

TEST_F(WeightsTest, AnUntiedHeadHasToBeAskedFor) {
  Tensors tensors(reference("even"));
  auto untied = even_model();
  untied.tied_embeddings = false;
  EXPECT_TRUE(contains(misfit(tensors, untied), "lm_head.weight [256, 64] is missing"));
  tensors.add("lm_head.weight", {256, 64}, std::vector<float>(256 * 64, 0.5F));
  EXPECT_TRUE(contains(misfit(tensors, even_model()), "lm_head.weight differs from wte.weight"));
  EXPECT_NO_THROW(weights_of(changed(tensors), untied));
}

TEST_F(WeightsTest, ValuesThatAreNotFiniteAreNamedWithTheirPosition) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::pair<float, std::string> cases[] = {{std::numeric_limits<float>::quiet_NaN(), "NaN"},
                                                 {infinity, "infinity"},
                                                 {-infinity, "-infinity"}};
  for (const auto& [value, name] : cases) {
    Tensors tensors(reference("even"));
    tensors.values[tensors.at("h.1.mlp.c_fc.weight")][3 * 256 + 17] = value;
    const auto path = changed(tensors);
    const Weights weights = weights_of(path, even_model());
    std::vector<float> part(100);
    weights.load_range("h.1.mlp.c_fc.weight", {0, 100}, part);
    const auto text = error_of(ExitCode::files, [&] {
      weights.load_range("h.1.mlp.c_fc.weight", {700, 100}, part);
    });
    EXPECT_EQ(text, path.string() + ": h.1.mlp.c_fc.weight [3, 17] is " + name +
                        "; weights have to be finite numbers");
    const grid::Group self = own_group(MPI_COMM_SELF);
    error_of(ExitCode::files, [&] {
      import_weights(self, path, model::parameter_table(even_model()), folder / "run",
                     manifest_for(even_model()));
    });
    EXPECT_FALSE(fs::exists(folder / "run"));
  }
}

TEST_F(WeightsTest, NamesCannotCommandATerminal) {
  Tensors tensors(reference("even"));
  tensors.add("x\x1b[2J\n", {1}, {1});
  EXPECT_TRUE(contains(misfit(tensors, even_model()), "x\\x1b[2J\\n is not a parameter"));
}

TEST_F(WeightsTest, ANameWithAndWithoutPrefixIsRefused) {
  Tensors tensors(reference("even"));
  tensors.add("transformer.ln_f.bias", {64}, std::vector<float>(64));
  EXPECT_TRUE(contains(misfit(tensors, even_model()), "ln_f.bias is there twice"));
}

TEST_F(WeightsTest, ThereAndBackIsTheSameFile) {
  const grid::Group self = own_group(MPI_COMM_SELF);
  const auto found = even_checkpoint(self, folder / "run");
  EXPECT_EQ(found.manifest.step, 0);
  EXPECT_EQ(found.path.filename(), "step_00000000");
  std::vector<float> moment(64, 1.0F);
  const checkpoint::StateShard shard{"ln_f.bias", {{0, 64}}, {{"second_moment", moment}}};
  checkpoint::read(found, std::span(&shard, 1));
  EXPECT_EQ(moment, std::vector<float>(64, 0.0F));

  const auto path = folder / "model.safetensors";
  export_weights(found, export_target(path));
  const SafetensorsFile original(reference("even"));
  const SafetensorsFile exported(path);
  ASSERT_EQ(exported.tensors().size(), original.tensors().size());
  for (const Tensor& tensor : original.tensors()) {
    ASSERT_NE(exported.find(tensor.name), nullptr) << tensor.name;
    EXPECT_EQ(exported.find(tensor.name)->shape, tensor.shape);
    EXPECT_EQ(values_of(exported, tensor.name), values_of(original, tensor.name)) << tensor.name;
  }
  std::ifstream stream(folder / "config.json");
  const auto config = nlohmann::json::parse(stream);
  EXPECT_EQ(config["model_type"], "gpt2");
  EXPECT_EQ(config["n_layer"], 2);
  EXPECT_EQ(config["n_embd"], 64);
  EXPECT_EQ(config["n_head"], 4);
  EXPECT_EQ(config["n_positions"], 32);
  EXPECT_EQ(config["vocab_size"], 256);
  EXPECT_EQ(config["n_inner"], 256);
  EXPECT_EQ(config["layer_norm_epsilon"], 1e-5);
  EXPECT_EQ(config["activation_function"], "gelu_new");
  EXPECT_EQ(config["tie_word_embeddings"], true);
  EXPECT_TRUE(config.at("bos_token_id").is_null());
  EXPECT_TRUE(config.at("eos_token_id").is_null());
  EXPECT_EQ(weights_of(folder, even_model()).note(), "");
}

TEST_F(WeightsTest, AnUntiedModelIsExportedWithPrefix) {
  const grid::Group self = own_group(MPI_COMM_SELF);
  auto model = even_model();
  model.tied_embeddings = false;
  Tensors tensors(reference("even"));
  tensors.add("lm_head.weight", {256, 64}, std::vector<float>(256 * 64, 0.5F));
  export_weights(checkpoint_of(self, changed(tensors), model, folder / "run"),
                 export_target(folder / "model.safetensors"));
  const SafetensorsFile exported(folder / "model.safetensors");
  EXPECT_NE(exported.find("lm_head.weight"), nullptr);
  EXPECT_NE(exported.find("transformer.wte.weight"), nullptr);
  EXPECT_EQ(exported.find("wte.weight"), nullptr);
  EXPECT_NO_THROW(weights_of(exported.path(), model));
}

TEST_F(WeightsTest, AllRanksOfAGroupImportTogether) {
  const grid::Group world = own_group(MPI_COMM_WORLD);
  const fs::path shared = world.broadcast((folder / "run").string());
  import_weights(world, reference("even"), model::parameter_table(even_model()), shared,
                 manifest_for(even_model()));
  std::vector<std::string> problems;
  const auto found = checkpoint::open(world, shared, saved_parameters, problems);
  EXPECT_EQ(found.manifest.shard_files.size(), static_cast<std::size_t>(world.size()));
  std::vector<float> back(64 * 192);
  const checkpoint::StateShard shard{"h.0.attn.c_attn.weight", {{0, 64 * 192}}, {{"master", back}}};
  checkpoint::read(found, std::span(&shard, 1));
  EXPECT_EQ(back, values_of(SafetensorsFile(reference("even")), "h.0.attn.c_attn.weight"));
  world.barrier();
}

TEST_F(WeightsTest, ABadFileFailsOnAllRanksAlike) {
  const grid::Group world = own_group(MPI_COMM_WORLD);
  const fs::path shared = world.broadcast((folder / "run").string());
  auto model = even_model();
  model.hidden = 32;
  const auto text = error_of(ExitCode::files, [&] {
    import_weights(world, reference("even"), model::parameter_table(model), shared,
                   manifest_for(model));
  });
  EXPECT_TRUE(contains(text, "more")) << text;
  EXPECT_FALSE(fs::exists(shared));
  world.barrier();
}

}  // namespace

}  // namespace kzero::convert
