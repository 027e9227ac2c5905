// Advice on the sums of gradients that nodes send.
#pragma once

#include <string>

#include "engine/blueprint.hpp"

namespace kzero::engine {

/// Returns which setting would let nodes send each sum of gradients once a step. Empty if they do,
/// if there is one node, or if no setting would.
std::string node_sums_note(const deck::Config& config, const Blueprint& blueprint);

}  // namespace kzero::engine
