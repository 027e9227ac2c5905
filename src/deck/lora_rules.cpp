#include "deck/lora_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "deck/linear_layers.hpp"
#include "deck/schema.hpp"

namespace kzero::deck {

namespace {

constexpr std::string_view all_linear = "all-linear";

/// Keys that have no effect without adapters.
std::vector<Violation> without_rank(const Config& config) {
  std::vector<Violation> violations;
  const Config defaults;
  for (const char* path : {"lora.targets", "lora.alpha", "lora.initial"}) {
    const Key& key = *find_key(path);
    const Value value = key.get(config);
    if (value == key.get(defaults)) continue;
    violations.push_back({{path, "lora.rank"},
                          fmt::format("{} = {} needs a lora.rank of at least 1, found 0", path,
                                      as_toml(key, value))});
  }
  return violations;
}

/// The names that targets may have, in the family's order. Layers of one name are one target.
/// Experts have no adapters.
std::vector<std::string_view> target_names(const Model& model) {
  std::vector<std::string_view> names;
  for (const LinearLayer& layer : linear_layers(model.family)) {
    if (model.experts > 0 && is_feed_forward(layer)) continue;
    if (std::ranges::find(names, layer.name()) == names.end()) names.push_back(layer.name());
  }
  return names;
}

/// Returns the layers that the targets mean, in the family's order. Unknown targets mean none.
std::vector<std::string> meant_by(const std::vector<std::string>& targets, const Model& model) {
  const bool all = std::ranges::find(targets, all_linear) != targets.end();
  std::vector<std::string> meant;
  for (const std::string_view layer : target_names(model)) {
    if (all || std::ranges::find(targets, layer) != targets.end()) meant.emplace_back(layer);
  }
  return meant;
}

}  // namespace

std::vector<Violation> apply_lora_rules(Config& config, Purpose purpose) {
  Lora& lora = config.lora;
  if (!trains_adapters(lora)) return without_rank(config);
  std::vector<Violation> violations;
  const std::vector<std::string_view> layers = target_names(config.model);
  const std::string known = fmt::format(
      "model.family = \"{}\"{} has {}, or \"{}\" for all of them", name_of(config.model.family),
      config.model.experts > 0 ? " with model.experts" : "", fmt::join(layers, ", "), all_linear);
  if (lora.targets.empty())
    violations.push_back({{"lora.targets", "lora.rank"},
                          fmt::format("lora.rank = {} needs lora.targets; {}", lora.rank, known)});
  for (const std::string& target : lora.targets) {
    if (target == all_linear || std::ranges::find(layers, target) != layers.end()) continue;
    violations.push_back({{"lora.targets", "model.family"},
                          fmt::format("lora.targets: \"{}\" is not a linear layer of the model; {}",
                                      target, known)});
  }
  if (violations.empty()) lora.targets = meant_by(lora.targets, config.model);
  if (purpose == Purpose::train && config.model.initial.empty())
    violations.push_back(
        {{"model.initial", "lora.rank"},
         fmt::format("lora.rank = {} needs model.initial, the weights that are frozen",
                     lora.rank)});
  return violations;
}

}  // namespace kzero::deck
