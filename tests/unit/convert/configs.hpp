// What a config.json that a test writes means.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convert/architecture.hpp"
#include "deck/architecture.hpp"
#include "unit/convert/support.hpp"

namespace kzero::convert {

inline constexpr const char* config_file = "hf/config.json";

inline std::vector<deck::ImpliedValue> implied_by(const nlohmann::json& config) {
  return architecture({config_file, config.dump()});
}

inline std::string refusal_of(const nlohmann::json& config) {
  std::string text = error_of(ExitCode::files, [&] { implied_by(config); });
  EXPECT_TRUE(text.starts_with("hf/config.json: ")) << text;
  return text;
}

inline nlohmann::json of_type(const std::string& type) { return {{"model_type", type}}; }

/// The implied values of keys, as a map.
inline std::map<std::string, deck::Value> values_of(const nlohmann::json& config) {
  std::map<std::string, deck::Value> found;
  for (const deck::ImpliedValue& one : implied_by(config)) {
    EXPECT_FALSE(found.contains(one.path)) << one.path;
    found[one.path] = one.value;
  }
  return found;
}

/// The model that it describes.
inline deck::Model model_of(const nlohmann::json& config) {
  deck::Model model;
  for (const deck::ImpliedValue& implied : implied_by(config))
    deck::set_model_value(*deck::find_key(implied.path), implied.value, model);
  return model;
}

}  // namespace kzero::convert
