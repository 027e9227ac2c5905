// Keys of config.json that tell layers apart: which of them have a window, and which have no rotary
// positions. A deck has patterns: every so many layers one is different.
#pragma once

#include "convert/config_keys.hpp"
#include "convert/model_classes.hpp"

namespace kzero::convert {

inline constexpr const char* full_attention = "full_attention";
inline constexpr const char* sliding_attention = "sliding_attention";

/// The kinds of layers that a model has. Each has rotary positions of its own.
struct LayerKinds {
  bool has_full = true, has_windows = false;
};

/// Reads which tokens a token sees in each of `layers` layers. Refuses lists that are not a
/// pattern; the message names the first layer that does not fit.
LayerKinds read_windows(ConfigKeys& keys, const ModelClass& type, Index layers);

/// Reads which layers have rotary positions. Refuses lists that are not a pattern.
void read_layers_without_rope(ConfigKeys& keys, Index layers);

/// Writes the keys that read_windows reads, for a class that has them.
void write_windows(const deck::Model& model, const ModelClass& type,
                   nlohmann::ordered_json& config);

/// Writes the keys that read_layers_without_rope reads.
void write_layers_without_rope(const deck::Model& model, nlohmann::ordered_json& config);

}  // namespace kzero::convert
