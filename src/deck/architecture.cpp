#include "deck/architecture.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kzero::deck {

std::vector<const Key*> defining_keys(ModelFamily family) {
  std::vector<const Key*> found;
  for (const Key& key : keys()) {
    if (key.defines_model && has_use(key, name_of(family))) found.push_back(&key);
  }
  return found;
}

Value model_value(const Key& key, const Model& model) {
  Config config;
  config.model = model;
  return key.get(config);
}

void set_model_value(const Key& key, const Value& value, Model& model) {
  Config config;
  config.model = model;
  key.set(config, value);
  model = config.model;
}

Model with_default_scales(Model model) {
  const auto leave_out = [](double& scale, double usual) {
    if (is_same_in_fp32(scale, usual)) scale = 0;
  };
  leave_out(model.attention_scale, 1 / std::sqrt(static_cast<double>(model.head_dim)));
  leave_out(model.embedding_scale,
            model.family == ModelFamily::gemma3 ? std::sqrt(static_cast<double>(model.hidden)) : 1);
  return model;
}

bool is_same_in_fp32(const Value& a, const Value& b) {
  const auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  if (x == nullptr || y == nullptr) return a == b;
  return static_cast<float>(*x) == static_cast<float>(*y);
}

std::vector<std::string> architecture_changes(const Model& before, const Model& now) {
  const Model plain_before = with_default_scales(before), plain_now = with_default_scales(now);
  std::vector<std::string> changes;
  for (const Key* key : defining_keys(now.family)) {
    if (model_value(*key, plain_before) == model_value(*key, plain_now)) continue;
    changes.push_back(fmt::format("{} is {}, was {}", key->path,
                                  as_toml(*key, model_value(*key, now)),
                                  as_toml(*key, model_value(*key, before))));
    if (key->path == "model.family") break;  // the other keys mean something else
  }
  return changes;
}

}  // namespace kzero::deck
