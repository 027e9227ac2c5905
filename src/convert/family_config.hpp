// The keys of config.json of every family except GPT-2. Their classes in transformers differ in
// their keys, in defaults, and in what they compute without a key (model_classes.hpp).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convert/config_keys.hpp"
#include "convert/model_classes.hpp"
#include "deck/config.hpp"

namespace kzero::convert {

/// Reads the keys that define the function of the weights, with the defaults of the class.
void read_family(ConfigKeys keys, const ModelClass& type);

/// The keys of such a model, except those that every family has. Throws Error(files), naming the
/// deck keys, if no class of transformers computes the model; `checkpoint` is for the message.
nlohmann::ordered_json family_config(const deck::Model& model, const std::string& checkpoint);

}  // namespace kzero::convert
