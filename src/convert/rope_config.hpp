// Rotary positions in the config.json of the Llama family. transformers 4 has `rope_theta` and
// `rope_scaling`, whose `rope_type` was formerly called `type`. transformers 5 has one object for
// both, `rope_parameters`. Source: modeling_rope_utils.py of transformers 4.57 and 5.
#pragma once

#include <nlohmann/json.hpp>

#include "convert/config_keys.hpp"
#include "deck/config.hpp"

namespace kzero::convert {

/// Reads either generation; if both are present, they must not contradict one another. Scalings
/// that kzero does not compute are problems.
void read_rope(ConfigKeys keys);

/// Adds the keys of both generations to a config.json. Factors must be floats and lengths integers;
/// otherwise transformers warns.
void write_rope(const deck::Model& model, nlohmann::ordered_json& config);

}  // namespace kzero::convert
