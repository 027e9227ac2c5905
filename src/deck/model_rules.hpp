// Rules between the keys of [model], and the values that are derived from others.
#pragma once

#include <string>
#include <vector>

#include "deck/rules.hpp"

namespace kzero::deck {

/// Fills in the zeros of the model's keys and returns every broken rule.
std::vector<Violation> apply_model_rules(Model& model);

/// "nearest: 96 and 128" for a value that should be a multiple of `unit`.
std::string nearest_multiples(Index value, Index unit);

}  // namespace kzero::deck
