// The keys of a GPT-2 model's config.json.
#pragma once

#include <nlohmann/json.hpp>

#include "convert/config_keys.hpp"
#include "deck/config.hpp"

namespace kzero::convert {

/// Reads what decides the function of the weights, with the defaults of transformers' GPT2Config.
/// Dropout, which only changes the training, is not read.
void read_gpt2(ConfigKeys keys);

/// The keys of such a model, except those that every family has.
nlohmann::ordered_json gpt2_config(const deck::Model& model);

/// The end of text in GPT-2's own vocabulary, its last token, which also begins a text; null for
/// any other vocabulary.
nlohmann::json gpt2_end_of_text(const deck::Model& model);

}  // namespace kzero::convert
