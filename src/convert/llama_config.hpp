// The keys of config.json of the Llama family: Llama, Mistral, Qwen2 and Qwen3. Their classes in
// transformers differ in their keys, in defaults, and in what they compute without a key.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convert/config_keys.hpp"
#include "deck/config.hpp"

namespace kzero::convert {

/// Reads the keys that define the function of the weights, with the defaults of the configuration
/// class of `model_type` ("llama", "mistral", "qwen2", "qwen3") in transformers 5
/// (configuration_*.py).
void read_llama(ConfigKeys keys, const std::string& model_type);

/// The keys of such a model, except those that every family has. Throws Error(files), naming the
/// deck keys, if no class of transformers computes the model; `checkpoint` is for the message.
nlohmann::ordered_json llama_config(const deck::Model& model, const std::string& checkpoint);

}  // namespace kzero::convert
