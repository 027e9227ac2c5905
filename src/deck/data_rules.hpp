// The rules between keys of [data], [[data.blend]] and [[evaluate]]; part of apply_rules().
#pragma once

#include <vector>

#include "deck/rules.hpp"

namespace kzero::deck {

/// Fills in the names and formats that the deck leaves out. Returns every broken rule.
std::vector<Violation> apply_data_rules(Config& config, Purpose purpose);

}  // namespace kzero::deck
