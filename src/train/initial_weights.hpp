// The initial master weights of a training.
#pragma once

#include "tensor/view.hpp"
#include "train/initial_values.hpp"
#include "train/state_shards.hpp"

namespace kzero::train {

/// Sets this rank's master weights of `units`: from `values` if given, else from the seed. A value
/// depends on seed, parameter and element alone, so every grid and stage starts from the same
/// model. `units` are all of the model's, in order.
void set_initial_weights(const tensor::Execution& exec, std::uint64_t seed,
                         const std::vector<UnitState>& units, const InitialValues& values);

}  // namespace kzero::train
