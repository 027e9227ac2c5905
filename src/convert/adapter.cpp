#include "convert/adapter.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "convert/adapter_config.hpp"
#include "convert/finite.hpp"
#include "convert/json_file.hpp"
#include "convert/model_file.hpp"
#include "convert/weight_files.hpp"

namespace kzero::convert {

namespace {

constexpr std::string_view peft_prefix = "base_model.model.";

/// The layers of the table with an adapter, under PEFT's names: "model.layers.0.self_attn.q_proj".
std::vector<std::string> adapted_layers(deck::ModelFamily family, const param::Table& table) {
  constexpr std::string_view ending = ".lora_A.weight";
  std::vector<std::string> layers;
  for (const param::UnitSpec& unit : table) {
    for (const param::ParamSpec& p : unit.params) {
      const std::string name = peft_name(family, p.name);
      if (unit.trains && name.ends_with(ending))
        layers.push_back(
            name.substr(peft_prefix.size(), name.size() - peft_prefix.size() - ending.size()));
    }
  }
  return layers;
}

std::vector<std::string> tensor_problems(const SafetensorsFile& file, deck::ModelFamily family,
                                         const param::Table& table) {
  std::vector<std::string> problems;
  std::set<std::string> known;
  for (const param::UnitSpec& unit : table) {
    for (const param::ParamSpec& p : unit.params) {
      if (!unit.trains) continue;
      const std::string name = peft_name(family, p.name);
      const Tensor* tensor = file.find(name);
      known.insert(name);
      if (tensor == nullptr) {
        problems.push_back(name + " is missing");
      } else if (tensor->shape != p.shape) {
        problems.push_back(fmt::format("{} has shape [{}], the model's is [{}]", name,
                                       fmt::join(tensor->shape, ", "), fmt::join(p.shape, ", ")));
      } else if (tensor->dtype != "F32" && tensor->dtype != "F16" && tensor->dtype != "BF16") {
        problems.push_back(fmt::format("{} is of dtype {}; it has to be F32, F16 or BF16", name,
                                       printable(tensor->dtype)));
      }
    }
  }
  for (const Tensor& tensor : file.tensors()) {
    if (!known.contains(tensor.name))
      problems.push_back(printable(tensor.name) + " is not of an adapter of this model");
  }
  return problems;
}

}  // namespace

std::string peft_name(deck::ModelFamily family, const std::string& parameter) {
  const TensorNames& names = names_of(family);
  return std::string(peft_prefix) + std::string(names.prefix) + names.plain(parameter);
}

AdapterWeights::AdapterWeights(const std::filesystem::path& folder, const deck::Lora& lora,
                               deck::ModelFamily family, const param::Table& table)
    : family_(family), file_(model_file(folder, adapter_weights_name)) {
  const nlohmann::json config =
      read_json_object(model_file(folder, adapter_config_name), most_config_bytes);
  std::vector<std::string> problems = adapter_problems(config, lora, adapted_layers(family, table));
  if (problems.empty()) {
    problems = tensor_problems(file_, family, table);
    const std::string reason = partial_layers(config);
    if (!problems.empty() && !reason.empty()) problems.insert(problems.begin(), reason);
  }
  constexpr std::size_t most = 10;
  const std::size_t hidden = problems.size() - std::min(problems.size(), most);
  problems.resize(problems.size() - hidden);
  if (hidden > 0) problems.push_back(fmt::format("and {} more", hidden));
  KZERO_REQUIRE(problems.empty(), ExitCode::files,
                "{}: is not an adapter for this model and deck:\n  {}", printable(folder.string()),
                fmt::join(problems, "\n  "));
}

std::string AdapterWeights::base_hash() const {
  const auto found = file_.metadata().find(base_hash_key);
  return found == file_.metadata().end() ? "" : found->second;
}

void AdapterWeights::load_range(const std::string& parameter, checkpoint::Range range,
                                std::span<float> values) const {
  const Tensor* tensor = file_.find(peft_name(family_, parameter));
  file_.read(*tensor, range, values);
  require_finite(file_.path().string(), {tensor->name, tensor->shape}, range, values);
}

}  // namespace kzero::convert
