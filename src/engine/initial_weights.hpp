// The initial master weights of a training run.
#pragma once

#include "engine/state_shards.hpp"
#include "engine/stored_weights.hpp"
#include "tensor/view.hpp"

namespace kzero::engine {

/// Sets this rank's master weights of `units` from `values` if given, otherwise from the seed. A
/// random value depends only on the seed, the parameter and the element. Every grid and stage
/// therefore starts from the same model. `units` are all units of `table`, in order. Frozen ones
/// have no state.
void set_initial_weights(const tensor::Execution& exec, std::uint64_t seed,
                         const param::Table& table, const std::vector<UnitState>& units,
                         const InitialValues& values);

/// Fills `values`, a part of a parameter that begins at element `first`, with the initial values
/// that the parameter's kind prescribes: a constant, or random numbers. `number` is the parameter's
/// place in the model, which separates its random numbers from those of other parameters.
void draw_initial(const tensor::Execution& exec, std::uint64_t seed, Index number,
                  const param::ParamSpec& parameter, Index first, tensor::Vector<float> values);

}  // namespace kzero::engine
