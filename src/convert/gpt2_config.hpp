// The keys of a GPT-2 model's config.json.
#pragma once

#include <nlohmann/json.hpp>

#include "convert/config_keys.hpp"
#include "deck/config.hpp"

namespace kzero::convert {

/// Reads the keys that define the function of the weights, with the defaults of transformers'
/// GPT2Config. Dropout affects only training and is not read.
void read_gpt2(ConfigKeys keys);

/// The keys of such a model, except those that every family has.
nlohmann::ordered_json gpt2_config(const deck::Model& model);

/// The end-of-text token of GPT-2's own vocabulary: its last token, which also begins a text. Null
/// for any other vocabulary.
nlohmann::json gpt2_end_of_text(const deck::Model& model);

}  // namespace kzero::convert
