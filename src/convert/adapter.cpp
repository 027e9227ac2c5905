#include "convert/adapter.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "convert/finite.hpp"
#include "convert/json_file.hpp"
#include "convert/model_file.hpp"

namespace kzero::convert {

namespace {

using Json = nlohmann::json;

constexpr Index config_limit = Index{1} << 20;
constexpr std::string_view peft_prefix = "base_model.model.";

bool is_off(const Json& value) {
  return value.is_null() || value == false || value == 0 || value == "none" ||
         (value.is_structured() && value.empty());
}

/// Settings of PEFT under which an adapter computes something that kzero does not.
constexpr const char* must_be_off[] = {"use_dora",
                                       "use_rslora",
                                       "use_qalora",
                                       "use_bdlora",
                                       "lora_bias",
                                       "bias",
                                       "modules_to_save",
                                       "rank_pattern",
                                       "alpha_pattern",
                                       "layers_to_transform",
                                       "layer_replication",
                                       "trainable_token_indices",
                                       "alora_invocation_tokens",
                                       "target_parameters"};

std::vector<std::string> config_problems(const Json& config, const deck::Lora& lora) {
  std::vector<std::string> problems;
  const auto value = [&](const char* name) { return config.value(name, Json()); };
  const auto require = [&](const char* name, const Json& wanted, const std::string& key) {
    if (value(name) != wanted)
      problems.push_back(
          fmt::format("{} is {}, but {} is {}", name, value(name).dump(), key, wanted.dump()));
  };
  if (value("peft_type") != "LORA")
    problems.push_back(fmt::format("peft_type is {}, not \"LORA\"", value("peft_type").dump()));
  require("r", lora.rank, "lora.rank");
  require("lora_alpha", lora.alpha, "lora.alpha");
  std::set<std::string> targets;
  for (const Json& target : value("target_modules")) {
    if (!target.is_string()) continue;
    const auto name = target.get<std::string>();
    targets.insert(name.substr(name.rfind('.') + 1));
  }
  const std::set<std::string> wanted(lora.targets.begin(), lora.targets.end());
  if (value("target_modules") != "all-linear" && targets != wanted)
    problems.push_back(fmt::format("target_modules are {}, but lora.targets are {}",
                                   fmt::join(targets, ", "), fmt::join(wanted, ", ")));
  for (const char* name : must_be_off) {
    if (!is_off(value(name)))
      problems.push_back(
          fmt::format("{} is {}, which kzero does not compute", name, value(name).dump()));
  }
  return problems;
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
  std::vector<std::string> problems = config_problems(
      read_json_object(model_file(folder, adapter_config_name), config_limit), lora);
  if (problems.empty()) problems = tensor_problems(file_, family, table);
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
