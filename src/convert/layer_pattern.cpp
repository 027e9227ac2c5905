#include "convert/layer_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace kzero::convert {

namespace {

using Json = nlohmann::json;

/// The default of `sliding_window` in all classes that have it.
constexpr Index default_window = 4096;

/// Returns whether layer i, from 0, is the different one of its period. 0: none is.
bool is_rare(Index i, Index every) { return every > 0 && (i + 1) % every == 0; }

/// Reads a list with one entry for each layer, `usual` or `rare`. Returns every how many layers one
/// is rare, 0 if none is. Adds a problem and returns nothing for any other list.
std::optional<Index> read_period(ConfigKeys& keys, const char* key, Index layers, const Json& usual,
                                 const Json& rare) {
  const Json& list = keys.at(key);
  if (!list.is_array() || static_cast<Index>(list.size()) != layers) {
    keys.refuse(key, fmt::format("it must be a list of num_hidden_layers = {} entries", layers));
    return std::nullopt;
  }
  const auto first = std::ranges::find(list, rare) - list.begin();
  const Index every = first < layers ? first + 1 : 0;
  for (Index i = 0; i < layers; ++i) {
    const Json& entry = list[static_cast<std::size_t>(i)];
    if (entry == (is_rare(i, every) ? rare : usual)) continue;
    const bool is_known = entry == rare || entry == usual;
    const std::string entry_name = fmt::format("{}[{}]", key, i);
    keys.refuse_value(
        entry_name, entry,
        is_known ? fmt::format("kzero computes {} in every so many layers, and after "
                               "{}[{}] that is every {}",
                               json_shown(rare), key, first, every)
                 : fmt::format("kzero computes {} and {}", json_shown(usual), json_shown(rare)));
    return std::nullopt;
  }
  return every;
}

/// Reads a period from a key that is a number. Without the key it is `default_period`, and layers
/// that are fewer have no rare one.
std::optional<Index> read_number(ConfigKeys& keys, const char* key, Index layers,
                                 Index default_period) {
  if (key == nullptr || !keys.has(key)) return default_period > layers ? 0 : default_period;
  const Json& value = keys.at(key);
  if (value.is_number_integer() && value >= 1 && value <= layers) return value.get<Index>();
  keys.refuse(key, fmt::format("it must be 1 to num_hidden_layers = {}", layers));
  return std::nullopt;
}

/// Reads windows in some layers.
LayerKinds read_layer_types(ConfigKeys& keys, const ModelClass& type, Index layers) {
  const char* key = keys.at("layer_types").is_null() ? type.pattern_key : "layer_types";
  const std::optional<Index> every =
      keys.at("layer_types").is_null()
          ? read_number(keys, key, layers, type.full_attention_every)
          : read_period(keys, key, layers, sliding_attention, full_attention);
  if (!every) return {};
  const std::string origin = keys.describe(key == nullptr ? "layer_types" : key);
  const bool is_full = *every == 1;
  keys.imply("model.full_attention_every", is_full ? Index{0} : *every, origin);
  if (is_full) {
    keys.imply("model.window", Index{0}, origin);
  } else {
    keys.imply({"model.window", {"sliding_window"}, default_window});
  }
  return {.has_full = *every > 0, .has_windows = !is_full};
}

}  // namespace

LayerKinds read_windows(ConfigKeys& keys, const ModelClass& type, Index layers) {
  if (type.windows == Windows::by_layer) return read_layer_types(keys, type, layers);
  if (type.windows == Windows::all) {
    const bool is_missing = !keys.has("sliding_window");
    if (is_missing ? type.window == 0 : keys.at("sliding_window").is_null()) {
      keys.imply("model.window", Index{0}, keys.describe("sliding_window"));
    } else {
      keys.imply({"model.window", {"sliding_window"}, type.window});
    }
  }
  if (type.windows == Windows::switched_off)
    keys.require("use_sliding_window", false, {false},
                 "kzero computes attention over all positions before a token");
  const Json& types = keys.at("layer_types");
  const bool is_full =
      types.is_null() || (types.is_array() && std::ranges::all_of(types, [](const Json& layer) {
                            return layer == full_attention;
                          }));
  if (!is_full) keys.refuse("layer_types", "kzero reads \"full_attention\" in every layer");
  return {};
}

void read_layers_without_rope(ConfigKeys& keys, Index layers) {
  constexpr const char *list = "no_rope_layers", *interval = "no_rope_layer_interval";
  const bool has_list = !keys.at(list).is_null();
  const std::optional<Index> every =
      has_list ? read_period(keys, list, layers, 1, 0) : read_number(keys, interval, layers, 4);
  const char* key = has_list ? list : interval;
  if (every == 1) return keys.refuse(key, "kzero needs a layer with rotary positions");
  if (every) keys.imply("model.no_rope_every", *every, keys.describe(key));
}

void write_windows(const deck::Model& model, const ModelClass& type,
                   nlohmann::ordered_json& config) {
  if (type.windows == Windows::none) return;
  // transformers 4 makes the mask of a window even if no layer has one.
  const bool is_null = model.window == 0 && type.windows != Windows::by_layer;
  const Index window = model.window == 0 ? model.sequence : model.window;
  config["sliding_window"] = nullptr;
  if (!is_null) config["sliding_window"] = window;
  if (type.windows == Windows::switched_off) config["use_sliding_window"] = false;
  if (type.windows != Windows::by_layer) return;
  auto types = nlohmann::ordered_json::array();
  for (Index i = 0; i < model.layers; ++i) {
    const bool is_full = model.window == 0 || is_rare(i, model.full_attention_every);
    types.push_back(is_full ? full_attention : sliding_attention);
  }
  config["layer_types"] = types;
}

void write_layers_without_rope(const deck::Model& model, nlohmann::ordered_json& config) {
  auto rotates = nlohmann::ordered_json::array();
  for (Index i = 0; i < model.layers; ++i)
    rotates.push_back(is_rare(i, model.no_rope_every) ? 0 : 1);
  config["no_rope_layers"] = rotates;
}

}  // namespace kzero::convert
