// Exports: the files they replace, the files they refuse to touch, and the remains after a failure.
#include "convert/export.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/float16.hpp"
#include "checkpoint/writer.hpp"
#include "convert/shards.hpp"
#include "convert/weight_files.hpp"
#include "unit/convert/models.hpp"

namespace kzero::convert {

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ExportTest : public FolderTest {
 protected:
  ExportTest() : self(own_group(MPI_COMM_SELF)), found(even_checkpoint(self, folder / "run")) {}

  void write(const fs::path& to, const ExportOptions& options = {}) const {
    export_weights(found, export_target(to), options);
  }
  std::string error(const fs::path& to) const {
    return error_of(ExitCode::files, [&] { write(to); });
  }
  std::size_t entries(const fs::path& path) const {
    return std::distance(fs::directory_iterator(path), fs::directory_iterator());
  }

  grid::Group self;
  checkpoint::Found found;
};

TEST_F(ExportTest, AFolderIsMadeAndItsFilesAreNamed) {
  const fs::path to = folder / "a" / "b";
  write(to);
  EXPECT_EQ(entries(to), 3U);  // includes generation_config.json
  EXPECT_NO_THROW(weights_of(to, even_model()));
  EXPECT_EQ(export_target(to / "").weights, to / weights_name);
}

TEST_F(ExportTest, AFileHasItsEndingAndAFolder) {
  write(folder / "mine.safetensors");
  EXPECT_NO_THROW(weights_of(folder / "mine.safetensors", even_model()));
  store(folder / "notes.txt", "notes");
  const auto text = error_of(ExitCode::usage, [&] { export_target(folder / "notes.txt"); });
  EXPECT_TRUE(contains(text, "notes.txt: is a file; weights go to a folder, or")) << text;
  EXPECT_EQ(export_target("x.safetensors").config, "config.json");
  fs::create_directory(folder / "dir.safetensors");
  EXPECT_EQ(export_target(folder / "dir.safetensors").config,
            folder / "dir.safetensors" / config_name);
}

TEST_F(ExportTest, WhatKzeroWroteIsReplaced) {
  const fs::path to = folder / "out";
  write(to);
  const std::string weights = text_of(to / weights_name);
  const std::string config = text_of(to / config_name);
  found.manifest.model.norm_eps = 1e-3;
  write(to);
  EXPECT_EQ(text_of(to / weights_name), weights);
  EXPECT_EQ(nlohmann::json::parse(text_of(to / config_name))["layer_norm_epsilon"], 1e-3);
  found.manifest.model.norm_eps = 1e-5;
  write(to);
  EXPECT_EQ(text_of(to / config_name), config);
}

TEST_F(ExportTest, FilesOfOthersStay) {
  const fs::path to = folder / "out";
  fs::create_directory(to);
  for (const char* name : {config_name, weights_name, index_name, "generation_config.json",
                           "model-00001-of-00009.safetensors"}) {
    store(to / name, "{\"model_type\": \"gpt2\"}");
    const std::string text = error(to);
    EXPECT_TRUE(contains(text, (to / name).string()) && contains(text, "choose another folder"))
        << text;
    EXPECT_EQ(text_of(to / name), "{\"model_type\": \"gpt2\"}");
    EXPECT_EQ(entries(to), 1U);
    fs::remove(to / name);
  }
}

TEST_F(ExportTest, LargeWeightsAreSeveralFilesWithAnIndex) {
  const fs::path to = folder / "out";
  write(to, {.shard_bytes = 100'000});
  EXPECT_FALSE(fs::exists(to / weights_name));
  const nlohmann::json index = nlohmann::json::parse(text_of(to / index_name));
  const SafetensorsFile whole(reference("even"));
  Index bytes = 0;
  std::map<std::string, Index> filled;
  for (const Tensor& tensor : whole.tensors()) {
    bytes += tensor.elements() * 4;
    filled[index.at("weight_map").at(tensor.name)] += tensor.elements() * 4;
  }
  EXPECT_EQ(index.at("metadata").at("total_size"), bytes);
  EXPECT_GT(filled.size(), 3U);
  for (const auto& [name, size] : filled) {
    EXPECT_TRUE(is_shard_name(name)) << name;
    EXPECT_LE(size, 100'000) << name;
    EXPECT_TRUE(fs::exists(to / name));
  }
  EXPECT_EQ(entries(to), filled.size() + 3);
  const Weights weights = weights_of(to, even_model());
  for (const Tensor& tensor : whole.tensors()) {
    std::vector<float> values(tensor.elements());
    weights.load_range(tensor.name, {0, tensor.elements()}, values);
    EXPECT_EQ(values, values_of(whole, tensor.name)) << tensor.name;
  }
}

TEST_F(ExportTest, ATensorLargerThanAFileHasOneOfItsOwn) {
  write(folder / "out", {.shard_bytes = 1});
  EXPECT_EQ(entries(folder / "out"), SafetensorsFile(reference("even")).tensors().size() + 3);
  EXPECT_NO_THROW(weights_of(folder / "out", even_model()));
}

TEST_F(ExportTest, AnotherDivisionLeavesNoFileOfTheFormerOne) {
  const fs::path to = folder / "out";
  for (const Index limit : {100'000, 200'000, 1'000'000'000, 150'000, 150'000, 1'000'000'000}) {
    write(to, {.shard_bytes = limit});
    const bool is_single = limit == 1'000'000'000;
    EXPECT_EQ(fs::exists(to / weights_name), is_single) << limit;
    EXPECT_EQ(fs::exists(to / index_name), !is_single) << limit;
    write(folder / "fresh", {.shard_bytes = limit});
    EXPECT_EQ(entries(to), entries(folder / "fresh")) << limit;
    EXPECT_NO_THROW(weights_of(to, even_model())) << limit;
    fs::remove_all(folder / "fresh");
  }
}

TEST_F(ExportTest, AFileOfWeightsIsNeverDivided) {
  write(folder / "mine.safetensors", {.shard_bytes = 1});
  EXPECT_NO_THROW(weights_of(folder / "mine.safetensors", even_model()));
}

TEST_F(ExportTest, WeightsAreRoundedToTheType) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
    const fs::path to = folder / std::string(name_of(dtype));
    write(to, {.dtype = dtype});
    const SafetensorsFile whole(reference("even")), rounded(to / weights_name);
    for (const Tensor& tensor : whole.tensors()) {
      EXPECT_EQ(rounded.find(tensor.name)->dtype, dtype == Dtype::bf16 ? "BF16" : "F16");
      std::vector<float> expected = values_of(whole, tensor.name);
      for (float& value : expected) {
        value = dtype == Dtype::bf16 ? static_cast<float>(bf16(value))
                                     : static_cast<float>(fp16(value));
      }
      EXPECT_EQ(values_of(rounded, tensor.name), expected) << tensor.name;
    }
    const auto config = nlohmann::json::parse(text_of(to / config_name));
    EXPECT_EQ(config["torch_dtype"], dtype == Dtype::bf16 ? "bfloat16" : "float16");
    EXPECT_EQ(config["dtype"], config["torch_dtype"]);
  }
}

TEST_F(ExportTest, ATokenizerIsWrittenOnceAndNotOverAnother) {
  const fs::path to = folder / "out";
  const std::string tokenizer =
      R"({"model": {"vocab": {}}, "x": ")" + std::string(3'000'000, 'x') + "\"}";
  Origin origin{.files = {{"additional_chat_templates/tool.jinja", "{{ t }}"},
                          {"merges.txt", "a b"},
                          {"tokenizer.json", tokenizer}}};
  write(to, {.origin = origin});
  EXPECT_EQ(text_of(to / "tokenizer.json"), tokenizer);
  EXPECT_EQ(text_of(to / "additional_chat_templates" / "tool.jinja"), "{{ t }}");
  write(to, {.origin = origin});
  *origin.find("merges.txt") = "c d";
  const std::string text = error_of(ExitCode::files, [&] { write(to, {.origin = origin}); });
  EXPECT_TRUE(
      contains(text, (to / "merges.txt").string() + ": exists and is not the merges.txt of"))
      << text;
  EXPECT_EQ(text_of(to / "merges.txt"), "a b");
}

TEST_F(ExportTest, ASecondModelInAFolderNeedsTheSameConfig) {
  const fs::path to = folder / "out";
  write(to);
  write(to / "other.safetensors");
  found.manifest.model.heads = 2;
  EXPECT_TRUE(contains(error(to), "config.json: describes another model"));
  EXPECT_NO_THROW(weights_of(to / "other.safetensors", even_model()));
}

/// A checkpoint of one tensor with `value` at [1, 3].
checkpoint::Found checkpoint_with(const grid::Group& self, const fs::path& to, float value) {
  checkpoint::Manifest manifest = manifest_for(even_model());
  manifest.parameters = {{"ln_f.weight", {8, 8}}};
  std::vector<float> values(64), zeros(64);
  values[11] = value;
  const checkpoint::StateShard shard{
      "ln_f.weight",
      {{0, 64}},
      {{"master", values}, {"first_moment", zeros}, {"second_moment", zeros}}};
  checkpoint::write(self, to, manifest, std::span(&shard, 1), 0);
  std::vector<std::string> problems;
  const auto its_own = [](const checkpoint::Manifest& read) { return read.parameters; };
  return checkpoint::open(self, to, its_own, problems);
}

TEST_F(ExportTest, ValuesThatAreNotFiniteStopItBeforeAnythingChanges) {
  const fs::path to = folder / "out";
  write(to);
  const std::string weights = text_of(to / weights_name);
  found = checkpoint_with(self, folder / "bad", std::numeric_limits<float>::quiet_NaN());
  const std::string text = error(to);
  EXPECT_TRUE(contains(text, "ln_f.weight [1, 3] is NaN")) << text;
  EXPECT_EQ(text_of(to / weights_name), weights);
  EXPECT_EQ(entries(to), 3U);
}

TEST_F(ExportTest, ValuesThatRoundToInfinityStopItToo) {
  const fs::path to = folder / "out";
  found = checkpoint_with(self, folder / "large", -65520.0F);
  const std::string text = error_of(ExitCode::files, [&] { write(to, {.dtype = Dtype::fp16}); });
  EXPECT_TRUE(contains(text, "ln_f.weight [1, 3] is -65520, which fp16 cannot represent")) << text;
  EXPECT_EQ(entries(to), 0U);
  write(to, {.dtype = Dtype::bf16});
  found = checkpoint_with(self, folder / "below", std::nextafter(65520.0F, 0.0F));
  write(to, {.dtype = Dtype::fp16});
  found = checkpoint_with(self, folder / "huge", std::numeric_limits<float>::max());
  EXPECT_TRUE(contains(error_of(ExitCode::files, [&] { write(to, {.dtype = Dtype::bf16}); }),
                       "ln_f.weight [1, 3] is 3.40282e+38, which bf16 cannot represent"));
  write(to);
}

}  // namespace

}  // namespace kzero::convert
