// A run that trains adapters on frozen weights.
#pragma once

#include <cstdint>
#include <string>

#include "engine/blueprint.hpp"
#include "run/trainer.hpp"

namespace kzero::run {

/// Throws AgreedError(usage) if the adapters of lora.initial were trained on other weights than
/// those of model.initial, whose hash is `hash`. The same on every rank.
void require_base(const RunInputs& inputs, const deck::Config& config, std::uint64_t hash);

/// The numbers of trained and of frozen parameters, for people.
std::string adapters_note(const engine::Blueprint& blueprint);

}  // namespace kzero::run
