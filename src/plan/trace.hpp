// The schedule of a micro-batch for people: what each operation reads and writes, which collectives
// may overlap with it, and where ranks wait for one another.
#pragma once

#include <string>

#include "engine/blueprint.hpp"

namespace kzero::plan {

/// Formats the schedule; `config` is resolved for its ranks.
std::string trace(const deck::Config& config, const engine::Blueprint& blueprint);

}  // namespace kzero::plan
