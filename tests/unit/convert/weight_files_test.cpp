// The files that hold the weights: folders and indices in the Hugging Face layout.
#include "convert/weight_files.hpp"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "unit/convert/models.hpp"

namespace kzero::convert {

namespace {

using nlohmann::json;

constexpr const char* first = "model-00001-of-00002.safetensors";
constexpr const char* second = "model-00002-of-00002.safetensors";

class WeightFileTest : public FolderTest {
 protected:
  /// Writes the reference model as two files with an index.
  void write_set() {
    const Tensors whole(reference("even"));
    Tensors parts[2];
    for (std::size_t i = 0; i < whole.values.size(); ++i) {
      const auto& [name, shape] = whole.shapes[i];
      parts[i % 2].add(name, shape, whole.values[i]);
      map[name] = i % 2 == 0 ? first : second;
    }
    parts[0].write(folder / first);
    parts[1].write(folder / second);
    write_index();
  }

  void write_index() const {
    const json index{{"metadata", {{"total_size", 1}}}, {"weight_map", map}};
    store(folder / index_name, index.dump());
  }

  std::string error(const fs::path& path) const {
    return error_of(ExitCode::files, [&] { weights_of(path, even_model()); });
  }

  json map = json::object();
};

TEST_F(WeightFileTest, ASetOfFilesIsReadByItsFolderOrIndex) {
  write_set();
  const SafetensorsFile whole(reference("even"));
  for (const auto& path : {folder, folder / index_name}) {
    const Weights weights = weights_of(path, even_model());
    for (const Tensor& tensor : whole.tensors()) {
      std::vector<float> values(tensor.elements());
      weights.load_range(tensor.name, {0, tensor.elements()}, values);
      EXPECT_EQ(values, values_of(whole, tensor.name)) << tensor.name;
    }
  }
}

TEST_F(WeightFileTest, AnIndexHasToFitItsFiles) {
  write_set();
  map["ln_f.bias"] = map["ln_f.weight"] = first;
  write_index();
  EXPECT_TRUE(contains(error(folder),
                       "is not in model-00001-of-00002.safetensors, where the index "
                       "places it"));
  fs::remove(folder / second);
  EXPECT_TRUE(contains(error(folder), (folder / second).string() + ": cannot be opened"));
}

TEST_F(WeightFileTest, AMalformedIndexIsOneError) {
  const fs::path index = folder / index_name;
  const std::pair<std::string, std::string> cases[] = {
      {"", "is not a JSON object"},
      {"[]", "is not a JSON object"},
      {"{}", "has no \"weight_map\""},
      {R"({"weight_map":[]})", "has no \"weight_map\""},
      {R"({"weight_map":{}})", "has no \"weight_map\""},
      {R"({"weight_map":{"x":1}})", "tensor x is placed in 1, which is not the name of a file"},
      {R"({"weight_map":{"x":""}})", "tensor x is placed in \"\""},
      {R"({"weight_map":{"x":".."}})", "tensor x is placed in \"..\""},
      {R"({"weight_map":{"x":"../y"}})", "tensor x is placed in \"../y\""},
      {R"({"weight_map":{"x":"/etc/passwd"}})", "tensor x is placed in \"/etc/passwd\""},
      {R"({"weight_map":{"x":"y\u0000z"}})", "tensor x is placed in \"y\\u0000z\""},
      {R"({"weight_map":{"\u001bx":"\u001by/"}})", "tensor \\x1bx is placed in \"\\u001by/\""}};
  for (const auto& [text, expected] : cases) {
    store(index, text);
    const std::string found = error(index);
    EXPECT_TRUE(found.starts_with(index.string() + ": ") && contains(found, expected)) << found;
  }
}

TEST_F(WeightFileTest, AFolderHasToHoldOneModel) {
  EXPECT_TRUE(contains(error(folder), "holds neither model.safetensors nor"));
  store(folder / "pytorch_model.bin", "");
  EXPECT_TRUE(contains(error(folder), "pytorch_model.bin has to be saved as safetensors first"));
  write_set();
  fs::copy_file(reference("even"), folder / weights_name);
  EXPECT_TRUE(contains(error(folder), "holds both model.safetensors and"));
  EXPECT_NO_THROW(weights_of(folder / weights_name, even_model()));
  EXPECT_NO_THROW(weights_of(folder / index_name, even_model()));
}

TEST_F(WeightFileTest, PipesAreRefusedWithoutWaiting) {
  for (const char* name : {weights_name, index_name, config_name}) {
    fs::remove_all(folder);
    fs::create_directory(folder);
    if (name == std::string(config_name)) fs::copy_file(reference("even"), folder / weights_name);
    ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
    EXPECT_TRUE(contains(error(folder), (folder / name).string() + ": is a pipe")) << name;
  }
}

}  // namespace

}  // namespace kzero::convert
