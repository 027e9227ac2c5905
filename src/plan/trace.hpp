// Formats the schedule of a micro-batch for people: what each operation reads and writes, which
// collectives may overlap with it, and where ranks wait for each other.
#pragma once

#include <string>

#include "engine/blueprint.hpp"

namespace kzero::plan {

/// `config` must be resolved for its ranks.
std::string trace(const deck::Config& config, const engine::Blueprint& blueprint);

}  // namespace kzero::plan
