// The schedule of a micro-batch for people: what each operation reads and writes, which collectives
// may overlap with it, and where ranks wait for one another.
#pragma once

#include <string>

#include "train/blueprint.hpp"

namespace kzero::plan {

/// Formats the schedule; `config` is resolved for its ranks.
std::string trace(const deck::Config& config, const train::Blueprint& blueprint);

}  // namespace kzero::plan
