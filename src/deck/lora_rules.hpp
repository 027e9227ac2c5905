// Rules of [lora].
#pragma once

#include <vector>

#include "deck/rules.hpp"

namespace kzero::deck {

/// Checks [lora] and returns every broken rule. Replaces "all-linear" by the layers that it means,
/// and removes repeated targets.
std::vector<Violation> apply_lora_rules(Config& config, Purpose purpose);

}  // namespace kzero::deck
