// PEFT's adapter folders: read, written, and merged into the weights.
#include "convert/adapter.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/checksum.hpp"
#include "base/float16.hpp"
#include "checkpoint/writer.hpp"
#include "convert/adapter_export.hpp"
#include "convert/architecture.hpp"
#include "convert/weight_files.hpp"
#include "deck/architecture.hpp"
#include "unit/convert/models.hpp"

namespace kzero::convert {

namespace {

fs::path reference_folder(const std::string& name) {
  return fs::path(KZERO_TEST_DATA) / "reference" / name;
}

nlohmann::json json_of(const fs::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

/// The reference case lora_llama, whose adapter and settings PEFT's names and files have.
class AdapterTest : public FolderTest {
 protected:
  AdapterTest() {
    for (const deck::ImpliedValue& implied : read_architecture(base))
      deck::set_model_value(*deck::find_key(implied.path), implied.value, model);
    table = model::parameter_table(model, {}, lora);
  }

  /// A checkpoint with the reference's adapters.
  checkpoint::Found adapter_checkpoint() {
    const AdapterWeights weights(adapter, lora, model.family, table);
    checkpoint::Manifest manifest = manifest_for(model);
    manifest.state_arrays = {{"master"}};
    manifest.parameters = checkpoint::parameters_of(param::trained_of(table));
    manifest.adapters = {lora, base_hash()};
    std::vector<std::vector<float>> values;
    for (const checkpoint::Parameter& p : manifest.parameters) {
      values.emplace_back(static_cast<std::size_t>(p.elements()));
      weights.load_range(p.name, {0, p.elements()}, values.back());
    }
    std::vector<checkpoint::StateShard> shards;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const checkpoint::Parameter& p = manifest.parameters[i];
      shards.push_back({p.name, {{0, p.elements()}}, {{"master", values[i]}}});
    }
    checkpoint::write(self, folder / "run", manifest, shards, 0);
    std::vector<std::string> problems;
    return checkpoint::open(self, folder / "run", saved_parameters, problems);
  }

  std::uint64_t base_hash() const {
    const param::Table base_table = param::base_of(table);
    return hash_of_weights(Weights(base, model, base_table), base_table);
  }

  std::string error(const deck::Lora& asked) const {
    return error_of(ExitCode::files, [&] {
      AdapterWeights(adapter, asked, model.family, model::parameter_table(model, {}, asked));
    });
  }

  const fs::path base = reference_folder("lora_llama"),
                 adapter = reference_folder("lora_llama.adapter");
  const deck::Lora lora{.rank = 4, .alpha = 8, .targets = {"q_proj", "v_proj", "down_proj"}};
  deck::Model model;
  param::Table table;
  grid::Group self = own_group(MPI_COMM_SELF);
};

TEST_F(AdapterTest, AnExportHasPeftsNamesShapesAndValues) {
  const checkpoint::Found found = adapter_checkpoint();
  const ExportSource adapters = checkpoint_weights(found, param::master_weights);
  export_adapter(found, adapters, folder / "out", base.string(), {});
  const SafetensorsFile written(folder / "out" / adapter_weights_name),
      expected(adapter / adapter_weights_name);
  ASSERT_EQ(written.tensors().size(), 12U);
  ASSERT_EQ(written.tensors().size(), expected.tensors().size());
  for (const Tensor& tensor : expected.tensors()) {
    ASSERT_NE(written.find(tensor.name), nullptr) << tensor.name;
    EXPECT_EQ(written.find(tensor.name)->shape, tensor.shape) << tensor.name;
    EXPECT_EQ(values_of(written, tensor.name), values_of(expected, tensor.name)) << tensor.name;
  }
  const nlohmann::json config = json_of(folder / "out" / adapter_config_name),
                       peft = json_of(adapter / adapter_config_name);
  for (const auto& [key, value] : peft.items()) EXPECT_EQ(config.at(key), value) << key;
  EXPECT_EQ(config.at("base_model_name_or_path"), base.string());
  EXPECT_EQ(AdapterWeights(folder / "out", lora, model.family, table).base_hash(),
            format_checksum(found.manifest.adapters->base_hash));
  EXPECT_EQ(AdapterWeights(adapter, lora, model.family, table).base_hash(), "");
}

TEST_F(AdapterTest, AnExportReplacesOnlyWhatKzeroWrote) {
  const checkpoint::Found found = adapter_checkpoint();
  const ExportSource adapters = checkpoint_weights(found, param::master_weights);
  export_adapter(found, adapters, folder / "out", "base", {});
  EXPECT_NO_THROW(export_adapter(found, adapters, folder / "out", "base", {.dtype = Dtype::bf16}));
  fs::create_directory(folder / "others");
  fs::copy(adapter, folder / "others");
  const std::string text = error_of(
      ExitCode::files, [&] { export_adapter(found, adapters, folder / "others", "base", {}); });
  EXPECT_TRUE(contains(text, "adapter_model.safetensors: exists and was not written by kzero"))
      << text;
}

TEST_F(AdapterTest, AMergeAddsTheProductAndRoundsOnce) {
  const checkpoint::Found found = adapter_checkpoint();
  const ExportSource adapters = checkpoint_weights(found, param::master_weights);
  const param::Table base_table = param::base_of(table);
  const Weights weights(base, model, base_table);
  const SafetensorsFile before(base / weights_name), parts(adapter / adapter_weights_name);
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
    const fs::path to = folder / std::string(name_of(dtype));
    export_weights(merged_weights(found, adapters, weights, base.string(), base_table),
                   export_target(to), {.dtype = dtype});
    const SafetensorsFile after(to / weights_name);
    ASSERT_EQ(after.tensors().size(), before.tensors().size());
    for (const Tensor& tensor : before.tensors()) {
      std::vector<float> expected = values_of(before, tensor.name);
      const std::string layer = tensor.name.substr(0, tensor.name.rfind('.'));
      const auto a = values_of(parts, "base_model.model." + layer + ".lora_A.weight"),
                 b = values_of(parts, "base_model.model." + layer + ".lora_B.weight");
      for (std::size_t i = 0; i < expected.size() && !a.empty(); ++i) {
        const auto in = static_cast<std::size_t>(tensor.shape[1]);
        float product = 0;
        for (std::size_t r = 0; r < 4; ++r) product += b[i / in * 4 + r] * a[r * in + i % in];
        expected[i] += 2 * product;
      }
      const auto found_values = values_of(after, tensor.name);
      ASSERT_EQ(found_values.size(), expected.size()) << tensor.name;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const float rounded =
            dtype == Dtype::bf16 ? static_cast<float>(bf16(expected[i])) : expected[i];
        // The compiler may fuse a multiplication and an addition in one of the two programs.
        const float allowed = dtype == Dtype::bf16 ? 0x1p-8F : 4e-7F;
        ASSERT_NEAR(found_values[i], rounded, allowed * std::abs(rounded) + 1e-9F)
            << tensor.name << ' ' << i;
      }
    }
  }
}

TEST_F(AdapterTest, AMergeIntoOtherWeightsIsRefused) {
  checkpoint::Found found = adapter_checkpoint();
  const ExportSource adapters = checkpoint_weights(found, param::master_weights);
  found.manifest.adapters->base_hash += 1;
  const param::Table base_table = param::base_of(table);
  const Weights weights(base, model, base_table);
  const std::string text = error_of(ExitCode::files, [&] {
    export_weights(merged_weights(found, adapters, weights, "the base", base_table),
                   export_target(folder / "out"));
  });
  EXPECT_TRUE(contains(text, "its adapters were trained on weights of hash")) << text;
  EXPECT_TRUE(contains(text, "but those of the base have hash")) << text;
  EXPECT_FALSE(fs::exists(folder / "out" / weights_name));
}

TEST_F(AdapterTest, AnAdapterForAnotherModelOrDeckIsOneError) {
  deck::Lora other = lora;
  other.rank = 8, other.targets = {"q_proj"};
  std::string text = error(other);
  EXPECT_TRUE(contains(text, "lora_llama.adapter: is not an adapter for this model and deck:\n"))
      << text;
  EXPECT_TRUE(contains(text, "r is 4, but lora.rank is 8")) << text;
  EXPECT_TRUE(contains(text,
                       "target_modules are down_proj, q_proj, v_proj, but lora.targets are "
                       "q_proj"))
      << text;
  model.hidden = 32;
  text = error(lora);
  EXPECT_TRUE(contains(text,
                       "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight has "
                       "shape [4, 64], the model's is [4, 32]"))
      << text;
}

/// The reference's adapter with other settings.
class AdapterConfigTest : public AdapterTest {
 protected:
  AdapterConfigTest() {
    fs::create_directory(changed);
    fs::copy(adapter, changed);
  }

  void open(const nlohmann::json& changes) {
    nlohmann::json config = json_of(adapter / adapter_config_name);
    config.update(changes);
    fs::remove(changed / adapter_config_name);
    store(changed / adapter_config_name, config.dump());
    AdapterWeights(changed, lora, model.family, table);
  }
  std::string refusal(const nlohmann::json& changes) {
    return error_of(ExitCode::files, [&] { open(changes); });
  }

  const fs::path changed = folder / "changed";
};

TEST_F(AdapterConfigTest, WhatChangesTheFunctionIsRefusedByName) {
  for (const char* changes : {R"({"use_dora": true})",
                              R"({"use_qalora": true})",
                              R"({"lora_bias": true})",
                              R"({"bias": "all"})",
                              R"({"bias": "lora_only"})",
                              R"({"modules_to_save": ["lm_head"]})",
                              R"({"layer_replication": [[0, 2], [1, 2]]})",
                              R"({"trainable_token_indices": [1]})",
                              R"({"alora_invocation_tokens": [1]})",
                              R"({"target_parameters": ["experts.weight"]})",
                              R"({"use_bdlora": {"nblocks": 2}})",
                              R"({"arrow_config": {"top_k": 3}})",
                              R"({"kasa_config": {"beta": 1}})",
                              R"({"monteclora_config": {"num_samples": 8}})",
                              R"({"velora_config": {"num_groups": 1}})",
                              R"({"megatron_config": {"hidden_size": 64}})",
                              R"({"enable_lora": [true, false, true]})",
                              R"({"a_key_of_tomorrow": 1})",
                              R"({"init_lora_weights": "pissa"})",
                              R"({"init_lora_weights": "pissa_niter_16"})",
                              R"({"init_lora_weights": "olora"})",
                              R"({"init_lora_weights": "corda"})",
                              R"({"init_lora_weights": "loftq"})",
                              R"({"init_lora_weights": "lora_ga"})",
                              R"({"peft_type": "LOHA"})",
                              R"({"task_type": "SEQ_CLS"})",
                              R"({"r": 0})",
                              R"({"rank_pattern": {"q_proj": "4"}})",
                              R"({"rank_pattern": {"^model.*q_proj": 8}})",
                              R"({"target_modules": [4]})"}) {
    const auto json = nlohmann::json::parse(changes);
    const std::string text = refusal(json);
    EXPECT_TRUE(contains(text, json.begin().key() + " is ")) << changes << '\n' << text;
  }
}

TEST_F(AdapterConfigTest, AnotherRankOrScaleOfALayerIsNamed) {
  EXPECT_TRUE(contains(refusal({{"rank_pattern", {{"q_proj", 8}}}}),
                       "model.layers.1.self_attn.q_proj: r is 8, but lora.rank is 4"));
  const std::string one = refusal({{"alpha_pattern", {{"layers.1.mlp.down_proj", 16}}}});
  EXPECT_TRUE(contains(one, "model.layers.1.mlp.down_proj: lora_alpha is 16, but lora.alpha is 8"));
  EXPECT_FALSE(contains(one, "layers.0"));
  EXPECT_TRUE(contains(refusal({{"use_rslora", true}}),
                       "lora_alpha is 8.0 with use_rslora, which means 16, but lora.alpha is 8"));
  EXPECT_TRUE(contains(refusal({{"alpha_pattern", {{"q_proj", 8}, {"0.self_attn.q_proj", 4}}}}),
                       "alpha_pattern has two values for model.layers.0.self_attn.q_proj"));
}

TEST_F(AdapterConfigTest, LayersWithoutAnAdapterAreExplained) {
  EXPECT_TRUE(contains(
      refusal({{"target_modules", {"model.layers.0.self_attn.q_proj", "v_proj", "down_proj"}}}),
      "target_modules leave out model.layers.1.self_attn.q_proj"));
  Tensors tensors(adapter / adapter_weights_name);
  const std::size_t at = tensors.at("base_model.model.model.layers.1.mlp.down_proj.lora_A.weight");
  tensors.shapes.erase(tensors.shapes.begin() + static_cast<std::ptrdiff_t>(at));
  tensors.values.erase(tensors.values.begin() + static_cast<std::ptrdiff_t>(at));
  fs::remove(changed / adapter_weights_name);
  tensors.write(changed / adapter_weights_name);
  const std::string text = refusal({{"layers_to_transform", 0}});
  EXPECT_TRUE(contains(text, "layers_to_transform is 0; kzero has an adapter in every layer"))
      << text;
  EXPECT_TRUE(contains(text, "layers.1.mlp.down_proj.lora_A.weight is missing")) << text;
}

TEST_F(AdapterConfigTest, EverySpellingOfTheSameFunctionIsRead) {
  for (const char* changes :
       {R"({"target_modules": "all-linear"})", R"({"target_modules": ["all-linear"]})",
        R"j({"target_modules": ".*(q_proj|v_proj|down_proj)"})j", R"({"target_modules": null})",
        R"({"target_modules": ["self_attn.q_proj", "v_proj", "mlp.down_proj"]})",
        R"({"target_modules": ["model.layers.0.self_attn.q_proj", "layers.1.self_attn.q_proj",
            "v_proj", "down_proj"]})",
        R"({"rank_pattern": null, "alpha_pattern": null})",
        R"({"r": 8, "lora_alpha": 16, "rank_pattern": {"q_proj": 4, "v_proj": 4, "down_proj": 4},
            "alpha_pattern": {"q_proj": 8, "self_attn.v_proj": 8.0, "down_proj": 8}})",
        R"({"r": 8, "rank_pattern": {"q_proj": 4, "v_proj": 4, "down_proj": 4}})",
        R"({"use_rslora": true, "lora_alpha": 4})", R"({"rank_pattern": {"k_proj": 99}})",
        R"({"layers_to_transform": [0, 1], "layers_pattern": "layers"})",
        R"({"init_lora_weights": "gaussian"})", R"({"init_lora_weights": "eva"})",
        R"({"init_lora_weights": false, "lora_dropout": 0.1, "revision": "main"})",
        R"({"megatron_config": null, "megatron_core": "megatron.core", "qalora_group_size": 16})",
        R"({"loftq_config": {}, "eva_config": null, "use_bdlora": null, "bias": "none"})",
        R"({"fan_in_fan_out": true, "task_type": null, "peft_version": "0.21.2"})",
        R"({"auto_mapping": {"parent_library": "transformers"}, "a_key_of_tomorrow": null})"}) {
    EXPECT_NO_THROW(open(nlohmann::json::parse(changes))) << changes;
  }
}

}  // namespace

}  // namespace kzero::convert
