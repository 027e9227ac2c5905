// Advice on what nodes send to each other.
#pragma once

#include <string>
#include <vector>

#include "engine/blueprint.hpp"

namespace kzero::engine {

/// Returns which settings would let nodes send each sum of gradients, and each parameter, once a
/// step. Empty if they do, if there is one node, or if no setting would.
std::vector<std::string> node_notes(const deck::Config& config, const Blueprint& blueprint);

}  // namespace kzero::engine
