// Rotary positions in config.json. transformers 4 has `rope_theta` and `rope_scaling`, whose
// `rope_type` was formerly called `type`. transformers 5 has one object for both,
// `rope_parameters`; classes with windows in some layers have one for each kind of layer in it. In
// transformers 4 the layers with a window have no scaling, and in Gemma 3 a base of their own,
// `rope_local_base_freq`. Source: modeling_rope_utils.py and configuration_*.py of transformers
// 4.57 and 5.
#pragma once

#include <nlohmann/json.hpp>

#include "convert/config_keys.hpp"
#include "convert/layer_pattern.hpp"
#include "convert/model_classes.hpp"
#include "deck/config.hpp"

namespace kzero::convert {

/// Reads either generation; if both are present, they must not contradict one another. Scalings
/// that kzero does not compute are problems, in each kind of layer that the model has.
void read_rope(ConfigKeys keys, const ModelClass& type, const LayerKinds& kinds);

/// Adds the keys of both generations to a config.json. Factors must be floats and lengths integers;
/// otherwise transformers warns.
void write_rope(const deck::Model& model, const ModelClass& type, nlohmann::ordered_json& config);

}  // namespace kzero::convert
