// Rules on what a restart must not change: the function of the saved weights, the optimizer's
// state, and the order of the training data. Each refusal says how to continue. Does not read
// weights.
#pragma once

#include <cstdint>

#include "checkpoint/folder/search.hpp"
#include "engine/blueprint.hpp"
#include "run/trainer.hpp"

namespace kzero::run {

/// Returns whether the checkpoint holds the state of the blueprint's optimizer.
bool is_of_same_optimizer(const checkpoint::Found& found, const engine::Blueprint& blueprint);

/// Throws Error(usage) unless a run can continue from the checkpoint:
/// - Its model is the deck's in every key that affects its values, even if no shape depends on it.
/// - It holds the state of the deck's optimizer, or the deck sets checkpoint.reset_optimizer.
/// - The run would continue with the next sample of the same data.
/// `blueprint` is the run's, and `data_digest` is that of its training data.
void require_same_training(const checkpoint::Found& found, const RunRequest& request,
                           const engine::Blueprint& blueprint, std::uint64_t data_digest);

}  // namespace kzero::run
