// The initial master weights of a training.
#pragma once

#include "engine/initial_values.hpp"
#include "engine/state_shards.hpp"
#include "tensor/view.hpp"

namespace kzero::engine {

/// Sets this rank's master weights of `units`: from `values` if given, else from the seed. A value
/// depends on seed, parameter and element alone, so every grid and stage starts from the same
/// model. `units` are all of the model's, in order.
void set_initial_weights(const tensor::Execution& exec, std::uint64_t seed,
                         const std::vector<UnitState>& units, const InitialValues& values);

}  // namespace kzero::engine
