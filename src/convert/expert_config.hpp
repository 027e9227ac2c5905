// Mixtures of experts in config.json. kzero has experts in every layer of a model or in none.
#pragma once

#include <nlohmann/json.hpp>

#include "convert/config_keys.hpp"
#include "convert/model_classes.hpp"
#include "deck/config.hpp"

namespace kzero::convert {

/// Reads the number of experts and how a token chooses among them. Adds nothing for a class without
/// experts. The factor of the loss that balances them is only a default for the deck.
void read_experts(ConfigKeys& keys, const ModelClass& type);

/// Writes the keys of a class with experts, for transformers 4 and 5.
void write_experts(const deck::Model& model, const ModelClass& type,
                   nlohmann::ordered_json& config);

}  // namespace kzero::convert
