// Checks the patterns of [[optimizer.group]] against the parameters of a model.
#pragma once

#include <string>
#include <vector>

#include "deck/config.hpp"

namespace kzero::deck {

/// One text for each group: why no parameter belongs to it, or nothing if one does.
std::vector<std::string> empty_groups(const std::vector<OptimizerGroup>& groups,
                                      const std::vector<std::string>& parameters);

}  // namespace kzero::deck
