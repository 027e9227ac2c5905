#include "convert/adapter.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "convert/finite.hpp"
#include "convert/model_file.hpp"
#include "convert/weight_files.hpp"
#include "deck/config.hpp"

namespace kzero::convert {

namespace {

// adapter_config.json, PEFT's description of an adapter. The keys are those of LoraConfig in peft
// 0.21; older and newer files have fewer and more.

using Json = nlohmann::json;
using Problems = std::vector<std::string>;

constexpr Index default_rank = 8, default_alpha = 8;  // of PEFT, for missing keys

/// Keys without an effect on what a trained adapter computes: names, and settings of a training, of
/// its first values, of quantized weights and of Megatron's layers when these are off. PEFT
/// corrects fan_in_fan_out by the kind of the layer. What layers_to_transform and exclude_modules
/// leave out has no tensors.
constexpr std::string_view without_effect[] = {
    "auto_mapping",   "base_model_name_or_path", "corda_config",   "ensure_weight_tying",
    "eva_config",     "exclude_modules",         "fan_in_fan_out", "inference_mode",
    "layers_pattern", "layers_to_transform",     "loftq_config",   "lora_dropout",
    "lora_ga_config", "megatron_core",           "peft_version",   "qalora_group_size",
    "revision",       "runtime_config"};

/// Keys that are read below.
constexpr std::string_view is_read[] = {
    "alpha_pattern", "init_lora_weights", "lora_alpha", "peft_type", "r",
    "rank_pattern",  "target_modules",    "task_type",  "use_rslora"};

/// Values of init_lora_weights that leave the base weights as they are. Other values move a part of
/// them into the adapter.
constexpr std::string_view plain_starts[] = {"eva", "gaussian", "mica", "orthogonal"};

bool is_off(const Json& value) {
  return value.is_null() || value == false || value == 0 || value == "none" || value == "" ||
         (value.is_structured() && value.empty());
}

template <class Names>
bool is_in(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

bool ends_with_part(std::string_view layer, std::string_view part) {
  return layer == part || (layer.size() > part.size() && layer.ends_with(part) &&
                           layer[layer.size() - part.size() - 1] == '.');
}

/// Returns whether the key of a pattern is a name or a path. A dot is one in PEFT's regular
/// expressions too, because names have no other character in its place.
bool is_path(const std::string& key) {
  return std::ranges::all_of(
      key, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
}

class AdapterConfig {
 public:
  AdapterConfig(const Json& config, const deck::Lora& lora, const std::vector<std::string>& layers,
                Problems& problems)
      : config_(config), lora_(lora), layers_(layers), problems_(problems) {}

  void check_kind() {
    const Json type = value("peft_type"), task = value("task_type");
    if (type != "LORA") refuse("peft_type", "it has to be \"LORA\"");
    if (!task.is_null() && task != "CAUSAL_LM") refuse("task_type", "kzero computes \"CAUSAL_LM\"");
    const Json start = value("init_lora_weights");
    const bool is_plain = start.is_null() || start.is_boolean() ||
                          (start.is_string() && is_in(plain_starts, start.get<std::string>()));
    if (!is_plain)
      refuse("init_lora_weights",
             "such an adapter is for changed base weights; let PEFT convert it with "
             "save_pretrained(path_initial_model_for_weight_conversion=...)");
    for (const auto& [key, found] : config_.items()) {
      if (is_in(without_effect, key) || is_in(is_read, key) || is_off(found)) continue;
      refuse(key, "kzero does not compute this");
    }
  }

  void check_ranks() {
    const Json rank = value("r", default_rank), alpha = value("lora_alpha", default_alpha);
    if (!rank.is_number_integer() || rank < 1) return refuse("r", "it must be a count above 0");
    if (!alpha.is_number()) return refuse("lora_alpha", "it must be a number");
    if (!value("use_rslora").is_null() && !value("use_rslora").is_boolean())
      return refuse("use_rslora", "it must be true or false");
    for (const char* name : {"rank_pattern", "alpha_pattern"})
      if (!is_pattern(name)) return;
    std::set<std::string> shown;
    for (const std::string& layer : layers_) check_layer(layer, rank, alpha, shown);
  }

  void check_targets() {
    const Json targets = value("target_modules");
    if (targets.is_null() || targets.is_string()) return;  // the tensors tell
    const bool is_list = targets.is_array() && std::ranges::all_of(targets, [](const Json& item) {
                           return item.is_string();
                         });
    if (!is_list) return refuse("target_modules", "it must be a text or a list of texts");
    std::set<std::string> names;
    for (const auto& target : targets.get<std::vector<std::string>>())
      names.insert(printable(target.substr(target.rfind('.') + 1)));
    const std::set<std::string> wanted(lora_.targets.begin(), lora_.targets.end());
    if (names == std::set<std::string>{"all-linear"}) return;
    if (names != wanted) {
      problems_.push_back(fmt::format("target_modules are {}, but lora.targets are {}",
                                      fmt::join(names, ", "), fmt::join(wanted, ", ")));
      return;
    }
    for (const std::string& layer : layers_) {
      const bool is_target = std::ranges::any_of(targets, [&](const Json& target) {
        return ends_with_part(layer, target.get<std::string>());
      });
      if (!is_target)
        problems_.push_back(fmt::format("target_modules leave out {}, but lora.targets are {}",
                                        layer, fmt::join(wanted, ", ")));
    }
  }

 private:
  Json value(const char* key, const Json& default_value = {}) const {
    const auto found = config_.find(key);
    return found == config_.end() ? default_value : *found;
  }

  void refuse(const std::string& key, const std::string& what) {
    problems_.push_back(
        fmt::format("{} is {}; {}", printable(key), json_shown(value(key.c_str())), what));
  }

  /// Returns whether each entry has a number that applies to layers by name, or to none.
  bool is_pattern(const char* name) {
    const Json pattern = value(name);
    if (pattern.is_null()) return true;
    bool is_good = pattern.is_object();
    for (const auto& [key, number] : pattern.items()) is_good = is_good && number.is_number();
    if (!is_good) {
      refuse(name, "it must be an object of numbers");
      return false;
    }
    for (const auto& [key, number] : pattern.items()) {
      if (is_path(key)) continue;
      refuse(name, "kzero reads names and paths of layers in it, no other regular expressions");
      return false;
    }
    return true;
  }

  /// The value that a pattern has for the layer, otherwise the usual one. Several entries for one
  /// layer must agree, because the order of the file is lost.
  Json of_layer(const char* name, const std::string& layer, const Json& default_value) {
    const Json pattern = value(name);
    Json found;
    for (const auto& [key, number] : pattern.items()) {
      if (!ends_with_part(layer, key)) continue;
      if (!found.is_null() && found != number)
        problems_.push_back(fmt::format("{} has two values for {}, {} and {}", name, layer,
                                        found.dump(), number.dump()));
      found = number;
    }
    return found.is_null() ? default_value : found;
  }

  /// Compares rank and scale of a layer; a text that is in `shown` is not repeated.
  void check_layer(const std::string& layer, const Json& default_r, const Json& default_a,
                   std::set<std::string>& shown) {
    const Json r = of_layer("rank_pattern", layer, default_r);
    const Json a = of_layer("alpha_pattern", layer, default_a);
    const bool is_default = r == default_r && a == default_a;
    const std::string where = is_default ? "" : layer + ": ";
    const bool has_root = value("use_rslora") == true;
    const double rank = r.get<double>();
    // In units of kzero's scale, alpha / rank.
    const double alpha = a.get<double>() * (has_root ? std::sqrt(rank) : 1);
    std::string text;
    if (r != lora_.rank) {
      text = fmt::format("{}r is {}, but lora.rank is {}", where, r.dump(), lora_.rank);
    } else if (static_cast<float>(alpha) != static_cast<float>(lora_.alpha)) {
      text = fmt::format("{}lora_alpha is {}{}, but lora.alpha is {}", where, a.dump(),
                         has_root ? fmt::format(" with use_rslora, which means {}", alpha) : "",
                         Json(lora_.alpha).dump());
    }
    if (!text.empty() && shown.insert(text).second) problems_.push_back(text);
  }

  const Json& config_;
  const deck::Lora& lora_;
  const std::vector<std::string>& layers_;
  Problems& problems_;
};

/// The key that gives adapters to some of the layers only, with its value; empty if there is none.
std::string partial_layers(const Json& config) {
  for (const char* key : {"layers_to_transform", "exclude_modules"}) {
    const Json found = config.value(key, Json());
    if (!is_off(found) || found == 0)  // the number of the first layer
      return fmt::format("{} is {}; kzero has an adapter in every layer that lora.targets name",
                         key, json_shown(found));
  }
  return "";
}

/// What keeps an adapter with this configuration from computing the function that kzero computes
/// with `lora`: each key with its value. `layers` are the names of the model's layers with an
/// adapter, as in PEFT: "model.layers.0.self_attn.q_proj". Spellings of the same function are
/// alike: a rank and a scale may be given for all layers or by patterns, with or without rsLoRA,
/// and layers by their names, paths, a regular expression or "all-linear". A regular expression is
/// not evaluated, because the tensors in the adapter's file tell which layers it has.
Problems adapter_problems(const Json& config, const deck::Lora& lora,
                          const std::vector<std::string>& layers) {
  Problems problems;
  AdapterConfig reading(config, lora, layers, problems);
  reading.check_kind();
  reading.check_ranks();
  reading.check_targets();
  return problems;
}

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
      read_json_object(model_file(folder, adapter_config_name), max_config_bytes);
  std::vector<std::string> problems = adapter_problems(config, lora, adapted_layers(family, table));
  if (problems.empty()) {
    problems = tensor_problems(file_, family, table);
    const std::string reason = partial_layers(config);
    if (!problems.empty() && !reason.empty()) problems.insert(problems.begin(), reason);
  }
  constexpr std::size_t max_shown = 10;
  const std::size_t hidden = problems.size() - std::min(problems.size(), max_shown);
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
