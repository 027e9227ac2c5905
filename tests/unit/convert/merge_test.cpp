// Adapters of GPT-2, whose weights are [in,out] and whose layers are not square, merged into them.
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoint/reader.hpp"
#include "checkpoint/writer.hpp"
#include "convert/adapter.hpp"
#include "convert/adapter_export.hpp"
#include "convert/weight_files.hpp"
#include "unit/convert/models.hpp"

namespace kzero::convert {

namespace {

constexpr std::size_t rank = 3;

class MergeTest : public FolderTest {
 protected:
  using Values = std::map<std::string, std::vector<float>>;

  /// A checkpoint of one step with the master weights and the average of adapters, which differ.
  checkpoint::Found adapter_checkpoint() {
    checkpoint::Manifest manifest = manifest_for(model);
    manifest.step = 1;
    manifest.state_arrays = {{param::master_weights}, {param::averaged_weights}};
    manifest.parameters = checkpoint::parameters_of(param::trained_of(table));
    manifest.adapters = {lora, hash_of_weights(base, base_table)};
    std::vector<checkpoint::StateShard> shards;
    for (std::size_t i = 0; i < manifest.parameters.size(); ++i) {
      const checkpoint::Parameter& p = manifest.parameters[i];
      checkpoint::StateShard shard{p.name, {{0, p.elements()}}};
      for (const param::StateArray& array : manifest.state_arrays) {
        std::vector<float>& values = saved[array.name][p.name];
        for (Index e = 0; e < p.elements(); ++e)
          values.push_back(static_cast<float>(std::sin(++number)));
        shard.arrays.push_back({array.name, values});
      }
      shards.push_back(shard);
    }
    checkpoint::write(self, folder / "run", manifest, shards, 0);
    std::vector<std::string> problems;
    return checkpoint::open(self, folder / "run", saved_parameters, problems);
  }

  /// W + (alpha / rank) (B A)^T, for W [in,out], A [rank,in] and B [out,rank].
  static std::vector<float> merged(std::vector<float> w, std::size_t out, const Values& adapters,
                                   const std::string& layer) {
    const auto a = adapters.find(layer + ".lora_A.weight"),
               b = adapters.find(layer + ".lora_B.weight");
    if (a == adapters.end()) return w;
    const std::size_t in = w.size() / out;
    for (std::size_t i = 0; i < w.size(); ++i) {
      float product = 0;
      for (std::size_t r = 0; r < rank; ++r)
        product += b->second[i % out * rank + r] * a->second[r * in + i / out];
      w[i] += 2 * product;
    }
    return w;
  }

  const deck::Model model = even_model();
  const deck::Lora lora{.rank = rank, .alpha = 6, .targets = {"c_attn", "c_proj", "c_fc"}};
  const param::Table table = model::parameter_table(model, {}, lora),
                     base_table = param::base_of(table);
  const Weights base{reference("even"), model, base_table};
  std::map<std::string, Values> saved;  // by array
  double number = 0;
  grid::Group self = own_group(MPI_COMM_SELF);
};

TEST_F(MergeTest, AdaptersOfGpt2AreAddedToWeightsOfInAndOut) {
  const checkpoint::Found found = adapter_checkpoint();
  const SafetensorsFile before(reference("even"));
  for (const bool is_average : {false, true}) {
    const std::string array = checkpoint::weights_in(found, is_average);
    const fs::path to = folder / array;
    const ExportSource adapters = checkpoint_weights(found, array);
    export_weights(merged_weights(found, adapters, base, "the base", base_table),
                   export_target(to));
    const SafetensorsFile after(to / weights_name);
    std::size_t changed = 0;
    for (const Tensor& tensor : before.tensors()) {
      const std::vector<float> w = values_of(before, tensor.name),
                               y = values_of(after, tensor.name);
      const std::string layer = tensor.name.substr(0, tensor.name.rfind('.'));
      const bool is_weight = tensor.name.ends_with(".weight") && tensor.shape.size() == 2;
      const auto expected =
          is_weight ? merged(w, static_cast<std::size_t>(tensor.shape[1]), saved.at(array), layer)
                    : w;
      ASSERT_EQ(y.size(), expected.size()) << tensor.name;
      // The compiler may fuse a multiplication and an addition in one of the two programs.
      for (std::size_t i = 0; i < y.size(); ++i)
        ASSERT_NEAR(y[i], expected[i], 1e-6F) << array << ' ' << tensor.name << ' ' << i;
      if (expected != w) ++changed;
    }
    EXPECT_EQ(changed, 8U);  // four layers of two blocks
  }
}

TEST_F(MergeTest, AnExportOfGpt2SaysHowItsWeightsLieAndIsReadAgain) {
  const checkpoint::Found found = adapter_checkpoint();
  export_adapter(found, checkpoint_weights(found, param::master_weights), folder / "adapter",
                 "the base", {});
  std::ifstream file(folder / "adapter" / adapter_config_name);
  EXPECT_EQ(nlohmann::json::parse(file).at("fan_in_fan_out"), true);
  const AdapterWeights again(folder / "adapter", lora, model.family, table);
  for (const checkpoint::Parameter& p : found.manifest.parameters) {
    std::vector<float> values(static_cast<std::size_t>(p.elements()));
    again.load_range(p.name, {0, p.elements()}, values);
    EXPECT_EQ(values, saved.at(std::string(param::master_weights)).at(p.name)) << p.name;
  }
}

// An average begins with the first update: before, it is zero.
TEST_F(MergeTest, AnAverageOfSkippedStepsAloneIsRefused) {
  checkpoint::Found found = adapter_checkpoint();
  found.manifest.skipped_steps = 1;
  const std::string text = error_of(ExitCode::usage, [&] { checkpoint::weights_in(found, true); });
  EXPECT_TRUE(contains(text, "its moving average of the weights has not begun")) << text;
  EXPECT_EQ(checkpoint::weights_in(found, false), param::master_weights);
}

}  // namespace

}  // namespace kzero::convert
