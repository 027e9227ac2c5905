// The parameters that a checkpoint holds, derived from the model and the adapters that its manifest
// records. Every command compares a checkpoint with them before it uses one.
#pragma once

#include <vector>

#include "checkpoint/format/manifest.hpp"

namespace kzero::engine {

/// Returns the parameters of the recorded model, or of its adapters alone, in the order of the
/// model's table. Not collective.
std::vector<checkpoint::Parameter> saved_parameters(const checkpoint::Manifest& manifest);

}  // namespace kzero::engine
