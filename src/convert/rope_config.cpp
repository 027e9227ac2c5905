#include "convert/rope_config.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kzero::convert {

namespace {

using Json = nlohmann::json;

constexpr const char* parameters = "rope_parameters";
constexpr const char* scaling = "rope_scaling";
constexpr double default_theta =
    10000;  // for all classes: RotaryEmbeddingConfigMixin.default_theta

/// Returns whether the value is given; null and {} count as not given.
bool is_given(const Json& value) { return !value.is_null() && value != Json::object(); }

/// Returns whether the newer object lacks or contradicts an entry of the older one.
bool contradict(const Json& newer, const Json& older) {
  for (const auto& [key, value] : older.items()) {
    const bool is_type = key == "type" || key == "rope_type";
    const auto found = newer.find(is_type && !newer.contains(key) ? "rope_type" : key);
    if (found == newer.end() || *found != value) return true;
  }
  return false;
}

/// The length from which scaling starts: from the object, otherwise from the file, otherwise the
/// longest length that the file allows, as in transformers 5.
void read_original_sequence(ConfigKeys& keys, ConfigKeys& top) {
  constexpr const char* original = "original_max_position_embeddings";
  constexpr const char* deck_key = "model.rope_original_sequence";
  const Json& inner = keys.at(original);
  const Json& outer = top.at(original);
  if (!inner.is_null() && !outer.is_null() && inner != outer)
    return top.refuse(original, fmt::format("{} contradicts it", keys.describe(original)));
  if (!inner.is_null() || (outer.is_null() && top.at("max_position_embeddings").is_null())) {
    keys.imply({deck_key, {original}});
  } else {
    top.imply({deck_key, {outer.is_null() ? "max_position_embeddings" : original}});
  }
}

void read_yarn(ConfigKeys& keys) {
  // transformers treats a 0 of these two as a missing key; here 0 is out of range.
  keys.imply({"model.rope_beta_fast", {"beta_fast"}, 32, true});
  keys.imply({"model.rope_beta_slow", {"beta_slow"}, 1, true});
  const Json& factor = keys.at("attention_factor");
  if (factor.is_number() && factor.get<double>() <= 0) {
    keys.refuse("attention_factor", "it must be above 0");
  } else if (factor.is_null()) {
    keys.imply("model.rope_attention_factor", 0.0,
               keys.describe("attention_factor") + ", which means 0.1 ln(factor) + 1");
  } else {
    keys.imply({"model.rope_attention_factor", {"attention_factor"}});
  }
  for (const char* key : {"mscale", "mscale_all_dim"})
    if (!keys.at(key).is_null()) keys.refuse(key, "kzero computes YaRN without it");
  keys.require("truncate", true, {true}, "kzero rounds the ends of YaRN's range");
}

/// Reads rope_type, or its former name `type`. For a type that kzero does not compute, adds a
/// problem and returns an empty text.
std::string read_type(ConfigKeys& keys) {
  const Json& now = keys.at("rope_type");
  const Json& former = keys.at("type");
  const Json type = !now.is_null() ? now : !former.is_null() ? former : Json("default");
  const char* key = now.is_null() && !former.is_null() ? "type" : "rope_type";
  const auto known = {Json("default"), Json("linear"), Json("llama3"), Json("yarn")};
  if (!former.is_null() && former != type) {
    keys.refuse("type", fmt::format("{} contradicts it", keys.describe("rope_type")));
    return "";
  }
  if (std::ranges::find(known, type) == known.end()) {
    keys.refuse(key, "kzero computes default, linear, llama3, yarn");
    return "";
  }
  auto name = type.get<std::string>();
  keys.imply(
      "model.rope_scaling", name == "default" ? std::string("none") : name,
      keys.describe(key) + (now.is_null() && former.is_null() ? ", which means \"default\"" : ""));
  return name;
}

void read_scaling(ConfigKeys keys, ConfigKeys& top) {
  const std::string type = read_type(keys);
  if (type.empty() || type == "default") return;
  keys.imply({"model.rope_factor", {"factor"}});
  if (type == "linear") return;
  read_original_sequence(keys, top);
  if (type == "yarn") return read_yarn(keys);
  keys.imply({"model.rope_low_freq_factor", {"low_freq_factor"}});
  keys.imply({"model.rope_high_freq_factor", {"high_freq_factor"}});
}

/// Refuses anything except one object of plain values: transformers 5 may have one object per layer
/// type.
bool is_plain_object(ConfigKeys& keys, const char* key) {
  const Json& value = keys.at(key);
  const bool is_plain = value.is_object() && std::ranges::none_of(value, [](const Json& item) {
                          return item.is_structured();
                        });
  if (!is_plain) keys.refuse(key, "kzero reads one object of plain values, for all layers");
  return is_plain;
}

}  // namespace

void read_rope(ConfigKeys keys) {
  for (const char* key : {parameters, scaling})
    if (is_given(keys.at(key)) && !is_plain_object(keys, key)) return;
  const Json &newer = keys.at(parameters), &older = keys.at(scaling);
  if (is_given(newer) && is_given(older) && contradict(newer, older))
    keys.refuse(scaling, fmt::format("{} contradicts it", keys.describe(parameters)));
  const char* holder = is_given(newer) ? parameters : scaling;
  const bool has_object = is_given(keys.at(holder));
  ConfigKeys inner = has_object ? keys.within(holder) : keys;
  ConfigKeys& of_theta = inner.at("rope_theta").is_null() ? keys : inner;
  of_theta.imply({"model.rope_theta", {"rope_theta"}, default_theta});
  for (ConfigKeys* object : {&keys, &inner}) {
    object->require("partial_rotary_factor", 1, {1, nullptr}, "kzero turns the entire head");
    if (!has_object) break;
  }
  if (has_object) {
    read_scaling(inner, keys);
  } else {
    keys.imply("model.rope_scaling", std::string("none"), keys.describe(scaling));
  }
}

void write_rope(const deck::Model& model, nlohmann::ordered_json& config) {
  nlohmann::ordered_json object;
  const bool is_scaled = model.rope_scaling != deck::RopeScaling::none;
  object["rope_type"] = is_scaled ? name_of(model.rope_scaling) : "default";
  if (is_scaled) object["factor"] = model.rope_factor;
  if (model.rope_original_sequence > 0)
    object["original_max_position_embeddings"] = model.rope_original_sequence;
  if (model.rope_scaling == deck::RopeScaling::llama3) {
    object["low_freq_factor"] = model.rope_low_freq_factor;
    object["high_freq_factor"] = model.rope_high_freq_factor;
  }
  if (model.rope_scaling == deck::RopeScaling::yarn) {
    object["beta_fast"] = model.rope_beta_fast;
    object["beta_slow"] = model.rope_beta_slow;
    if (model.rope_attention_factor > 0) object["attention_factor"] = model.rope_attention_factor;
  }
  config["rope_theta"] = model.rope_theta;
  config["rope_scaling"] = is_scaled ? object : nlohmann::ordered_json(nullptr);
  object["rope_theta"] = model.rope_theta;
  config["rope_parameters"] = object;
}

}  // namespace kzero::convert
