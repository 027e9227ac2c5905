// The initial master weights of a training run.
#pragma once

#include "engine/initial_values.hpp"
#include "engine/state_shards.hpp"
#include "tensor/view.hpp"

namespace kzero::engine {

/// Sets this rank's master weights of `units` from `values` if given, otherwise from the seed. A
/// random value depends only on the seed, the parameter and the element. Every grid and stage
/// therefore starts from the same model. `units` are all units of the model, in order.
void set_initial_weights(const tensor::Execution& exec, std::uint64_t seed,
                         const std::vector<UnitState>& units, const InitialValues& values);

}  // namespace kzero::engine
