// Rules of [lora].
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "deck/rules.hpp"

namespace kzero::deck {

/// The names of the linear layers in a family's blocks, which lora.targets may contain.
std::span<const std::string_view> linear_layers(ModelFamily family);

/// Checks [lora] and returns every broken rule. Replaces "all-linear" by the layers that it means,
/// and removes repeated targets.
std::vector<Violation> apply_lora_rules(Config& config, Purpose purpose);

}  // namespace kzero::deck
