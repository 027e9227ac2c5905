// Exports: what they replace, what they refuse to touch, and what is left when they fail.
#include "convert/gpt2_export.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "checkpoint/writer.hpp"
#include "convert/weight_files.hpp"
#include "unit/convert/models.hpp"

namespace kzero::convert {

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Gpt2Export : public FolderTest {
 protected:
  Gpt2Export() : self(own_group(MPI_COMM_SELF)), found(even_checkpoint(self, folder / "run")) {}

  void write(const fs::path& to) const { export_gpt2(found, export_target(to)); }
  std::string error(const fs::path& to) const {
    return error_of(ExitCode::files, [&] { write(to); });
  }
  std::size_t entries(const fs::path& path) const {
    return std::distance(fs::directory_iterator(path), fs::directory_iterator());
  }

  grid::Group self;
  checkpoint::Found found;
};

TEST_F(Gpt2Export, AFolderIsMadeAndItsFilesAreNamed) {
  const fs::path to = folder / "a" / "b";
  write(to);
  EXPECT_EQ(entries(to), 2U);
  EXPECT_NO_THROW(weights_of(to, even_model()));
  EXPECT_EQ(export_target(to / "").weights, to / weights_name);
}

TEST_F(Gpt2Export, AFileHasItsEndingAndAFolder) {
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

TEST_F(Gpt2Export, WhatKzeroWroteIsReplaced) {
  const fs::path to = folder / "out";
  write(to);
  const std::string weights = text_of(to / weights_name);
  const std::string config = text_of(to / config_name);
  found.manifest.model.layernorm_eps = 1e-3;
  write(to);
  EXPECT_EQ(text_of(to / weights_name), weights);
  EXPECT_EQ(nlohmann::json::parse(text_of(to / config_name))["layer_norm_epsilon"], 1e-3);
  found.manifest.model.layernorm_eps = 1e-5;
  write(to);
  EXPECT_EQ(text_of(to / config_name), config);
}

TEST_F(Gpt2Export, FilesOfOthersStay) {
  const fs::path to = folder / "out";
  fs::create_directory(to);
  for (const char* name : {config_name, weights_name, index_name}) {
    store(to / name, "{\"model_type\": \"gpt2\"}");
    const std::string text = error(to);
    EXPECT_TRUE(contains(text, (to / name).string()) && contains(text, "choose another folder"))
        << text;
    EXPECT_EQ(text_of(to / name), "{\"model_type\": \"gpt2\"}");
    EXPECT_EQ(entries(to), 1U);
    fs::remove(to / name);
  }
}

TEST_F(Gpt2Export, ASecondModelInAFolderNeedsTheSameConfig) {
  const fs::path to = folder / "out";
  write(to);
  write(to / "other.safetensors");
  found.manifest.model.heads = 2;
  EXPECT_TRUE(contains(error(to), "config.json: describes another model"));
  EXPECT_NO_THROW(weights_of(to / "other.safetensors", even_model()));
}

TEST_F(Gpt2Export, ValuesThatAreNotFiniteStopItBeforeAnythingChanges) {
  const fs::path to = folder / "out";
  write(to);
  const std::string weights = text_of(to / weights_name);
  checkpoint::Manifest manifest = manifest_for(even_model());
  manifest.parameters = {{"ln_f.weight", {8, 8}}};
  std::vector<float> values(64);
  std::vector<float> zeros(64);
  values[11] = std::numeric_limits<float>::quiet_NaN();
  const checkpoint::StateShard shard{
      "ln_f.weight",
      {{0, 64}},
      {{"master", values}, {"first_moment", zeros}, {"second_moment", zeros}}};
  checkpoint::write(self, folder / "bad", manifest, std::span(&shard, 1), 0);
  std::vector<std::string> problems;
  found = checkpoint::open(self, folder / "bad", problems);
  const std::string text = error(to);
  EXPECT_TRUE(contains(text, "ln_f.weight [1, 3] is NaN")) << text;
  EXPECT_EQ(text_of(to / weights_name), weights);
  EXPECT_EQ(entries(to), 2U);
}

}  // namespace

}  // namespace kzero::convert
