// Checks the patterns of [[optimizer.group]] against the parameters of a model.
#pragma once

#include <string>
#include <vector>

#include "deck/config.hpp"

namespace kzero::deck {

/// Explains for each group that no parameter belongs to why it has none; empty for other groups.
std::vector<std::string> empty_groups(const std::vector<OptimizerGroup>& groups,
                                      const std::vector<std::string>& parameters);

}  // namespace kzero::deck
