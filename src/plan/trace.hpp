// The schedule of a micro-batch for people: what each operation reads and writes, what may move
// while it computes, and where ranks wait for one another.
#pragma once

#include <string>

#include "train/blueprint.hpp"

namespace kzero::plan {

/// `config` is resolved for its ranks.
std::string trace(const deck::Config& config, const train::Blueprint& blueprint);

}  // namespace kzero::plan
