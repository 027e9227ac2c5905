// Checks what a restart must not change: the function that the saved weights compute, the state
// that the optimizer keeps, and the order of the training data. Each error message says how to
// continue. Does not read weights.
#pragma once

#include <cstdint>

#include "checkpoint/folder/search.hpp"
#include "engine/blueprint.hpp"
#include "run/trainer.hpp"

namespace kzero::run {

/// Returns whether the checkpoint holds the state of the blueprint's optimizer.
bool is_of_same_optimizer(const checkpoint::Found& found, const engine::Blueprint& blueprint);

/// Throws Error(usage) unless all of these hold:
/// - The checkpoint has the deck's model. Every key that the model's output depends on is compared,
///   including keys that do not affect shapes.
/// - It contains the state of the deck's optimizer, or checkpoint.reset_optimizer is set.
/// - The run would continue with the next sample of the same data, or checkpoint.allow_new_data
///   permits other data.
/// `blueprint` is the run's. `data_digest` is of its training data.
void require_same_training(const checkpoint::Found& found, const RunRequest& request,
                           const engine::Blueprint& blueprint, std::uint64_t data_digest);

}  // namespace kzero::run
