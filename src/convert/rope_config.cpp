#include "convert/rope_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace kzero::convert {

namespace {

using Json = nlohmann::json;

constexpr const char* parameters = "rope_parameters";
constexpr const char* scaling = "rope_scaling";
constexpr double gemma_window_theta = 10000;  // Gemma3TextConfig.default_theta["local"]

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

/// The rotary positions of one kind of layers. What its object lacks, or all of it without an
/// object, is outside of it.
struct Rotation {
  const char* object;     // the key that has the object, or may have one
  const char* kind;       // the key of the kind in it; null: one object is for all layers
  const char* theta_key;  // of the base outside of the object, and its meaning if it is missing
  double default_theta;
};

/// Refuses anything except an object of plain values.
bool is_plain_object(ConfigKeys& keys, const char* key, const char* what) {
  const Json& value = keys.at(key);
  const bool is_plain = value.is_object() && std::ranges::none_of(value, [](const Json& item) {
                          return item.is_structured();
                        });
  if (!is_plain) keys.refuse(key, what);
  return is_plain;
}

void read_rotation(ConfigKeys keys, const Rotation& rotation) {
  std::optional<ConfigKeys> inner;
  if (rotation.object != nullptr && is_given(keys.at(rotation.object))) {
    inner = keys.within(rotation.object);
    if (rotation.kind != nullptr) {
      const bool has_kind = is_given(inner->at(rotation.kind));
      if (has_kind && !is_plain_object(*inner, rotation.kind, "kzero reads plain values in it"))
        return;
      inner = has_kind ? std::optional(inner->within(rotation.kind)) : std::nullopt;
    }
  }
  if (inner && !inner->at("rope_theta").is_null()) {
    inner->imply({"model.rope_theta", {"rope_theta"}});
  } else {
    keys.imply({"model.rope_theta", {rotation.theta_key}, rotation.default_theta});
  }
  keys.require("partial_rotary_factor", 1, {1, nullptr}, "kzero turns the entire head");
  if (!inner) {
    keys.imply("model.rope_scaling", std::string("none"), keys.describe(scaling));
    return;
  }
  inner->require("partial_rotary_factor", 1, {1, nullptr}, "kzero turns the entire head");
  read_scaling(*inner, keys);
}

/// Refuses an older object that contradicts the newer one.
void compare_generations(ConfigKeys& keys, const Json& newer) {
  const Json& older = keys.at(scaling);
  if (is_given(newer) && is_given(older) && contradict(newer, older))
    keys.refuse(scaling, fmt::format("{} contradicts it", keys.describe(parameters)));
}

/// The one rotation of a class whose layers rotate alike.
void read_for_all(ConfigKeys& keys, const ModelClass& type) {
  for (const char* key : {parameters, scaling}) {
    if (is_given(keys.at(key)) &&
        !is_plain_object(keys, key, "kzero reads one object of plain values, for all layers"))
      return;
  }
  compare_generations(keys, keys.at(parameters));
  const bool is_newer = is_given(keys.at(parameters));
  if (type.needs_rope && !is_newer && !is_given(keys.at(scaling)))
    return keys.refuse(parameters, "transformers 4 and 5 take that to mean different scalings");
  read_rotation(keys, {is_newer ? parameters : scaling, nullptr, "rope_theta", type.rope_theta});
}

/// Returns whether the objects of a class whose layers may rotate in two ways can be read.
bool are_by_layer(ConfigKeys& keys, const ModelClass& type, const LayerKinds& kinds) {
  const Json& newer = keys.at(parameters);
  if (is_given(keys.at(scaling)) &&
      !is_plain_object(keys, scaling, "kzero reads an object of plain values"))
    return false;
  if (is_given(newer)) {
    const bool has_kinds =
        newer.is_object() && (newer.contains(full_attention) || newer.contains(sliding_attention));
    if (!has_kinds)
      keys.refuse(parameters, fmt::format("kzero reads an object for each of {} and {}",
                                          full_attention, sliding_attention));
    if (has_kinds) compare_generations(keys, newer.value(full_attention, Json()));
    return has_kinds;
  }
  const Json& theta = keys.at("rope_theta");
  const bool is_known = type.family == deck::ModelFamily::gemma3 || !kinds.has_windows ||
                        theta.is_null() || theta == type.rope_theta;
  if (!is_known)
    keys.refuse("rope_theta",
                fmt::format("in layers with a window transformers 5 uses {} and transformers 4 "
                            "this, unless there are rope_parameters",
                            type.rope_theta));
  return is_known;
}

/// Sets model.window_rope_theta of a model that has both kinds of layers: 0 if they rotate alike.
void add_window_base(ConfigKeys& keys, const ConfigReading& full, const ConfigReading& windows) {
  ConfigReading found{.file = windows.file, .implied = {}, .problems = windows.problems};
  const auto value_in = [](const ConfigReading& reading, const char* path) {
    const auto one = std::ranges::find(reading.implied, path, &deck::ImpliedValue::path);
    return one == reading.implied.end() ? deck::Value() : one->value;
  };
  const bool is_same = std::ranges::equal(
      full.implied, windows.implied,
      [](const auto& a, const auto& b) { return a.path == b.path && a.value == b.value; });
  const auto base =
      std::ranges::find(windows.implied, "model.rope_theta", &deck::ImpliedValue::path);
  if (base != windows.implied.end()) {
    found.implied.push_back(*base);
    found.implied.back().path = "model.window_rope_theta";
    if (is_same) found.implied.back().value = 0.0;
  }
  keys.add(found);
  if (!is_same && windows.problems.empty() &&
      value_in(windows, "model.rope_scaling") != deck::Value(std::string("none")))
    keys.refuse(parameters,
                "kzero scales rotary positions in layers without a window, or in all layers alike");
}

/// The rotations of a class whose layers with a window may have their own.
void read_by_layer(ConfigKeys& keys, const ModelClass& type, const LayerKinds& kinds) {
  if (!are_by_layer(keys, type, kinds)) return;
  const bool is_newer = is_given(keys.at(parameters));
  const bool is_gemma = type.family == deck::ModelFamily::gemma3;
  const Rotation full{is_newer ? parameters : scaling, is_newer ? full_attention : nullptr,
                      "rope_theta", type.rope_theta};
  const Rotation windows{is_newer ? parameters : nullptr, sliding_attention,
                         is_gemma ? "rope_local_base_freq" : "rope_theta",
                         is_gemma ? gemma_window_theta : type.rope_theta};
  const auto apart = [&](const Rotation& rotation) {
    return keys.read_apart([&](const ConfigKeys& inner) { read_rotation(inner, rotation); });
  };
  const ConfigReading main = apart(kinds.has_full ? full : windows);
  keys.add(main);
  if (kinds.has_full && kinds.has_windows) {
    add_window_base(keys, main, apart(windows));
  } else {
    keys.imply("model.window_rope_theta", 0.0, "all layers are of one kind");
  }
}

/// rope_parameters, rope_scaling and the base of one kind of layers, as they are written.
nlohmann::ordered_json rotation_object(const deck::Model& model) {
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
  return object;
}

}  // namespace

void read_rope(ConfigKeys keys, const ModelClass& type, const LayerKinds& kinds) {
  if (type.windows == Windows::by_layer) return read_by_layer(keys, type, kinds);
  read_for_all(keys, type);
}

void write_rope(const deck::Model& model, const ModelClass& type, nlohmann::ordered_json& config) {
  nlohmann::ordered_json object = rotation_object(model);
  const bool is_scaled = model.rope_scaling != deck::RopeScaling::none;
  config["rope_theta"] = model.rope_theta;
  config["rope_scaling"] = is_scaled ? object : nlohmann::ordered_json(nullptr);
  object["rope_theta"] = model.rope_theta;
  if (type.has("model.router_bias")) object["partial_rotary_factor"] = 1.0;  // not GLM's default
  if (type.windows != Windows::by_layer) {
    config["rope_parameters"] = object;
    return;
  }
  const double own = model.window_rope_theta == 0 ? model.rope_theta : model.window_rope_theta;
  const nlohmann::ordered_json windows{{"rope_type", "default"}, {"rope_theta", own}};
  if (type.family == deck::ModelFamily::gemma3) config["rope_local_base_freq"] = own;
  config["rope_parameters"] = {{full_attention, object}, {sliding_attention, windows}};
}

}  // namespace kzero::convert
