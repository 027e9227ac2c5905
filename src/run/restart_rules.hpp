// What a restart may not change: the function that the saved weights are of, the state that the
// optimizer keeps, and the order of the training data. Each refusal says how to go on. Does not
// read weights.
#pragma once

#include <cstdint>

#include "checkpoint/folder/search.hpp"
#include "engine/blueprint.hpp"
#include "run/trainer.hpp"

namespace kzero::run {

/// Returns whether the checkpoint holds the state of the blueprint's optimizer.
bool is_of_same_optimizer(const checkpoint::Found& found, const engine::Blueprint& blueprint);

/// Throws Error(usage) unless the checkpoint is of the deck's model, by every key that the model's
/// value depends on, whether or not shapes do, holds the state of its optimizer or the deck gives
/// that up (checkpoint.reset_optimizer), and the run would go on with the next sample of the same
/// data. `blueprint` is of the run; `data_digest` is of its training data.
void require_same_training(const checkpoint::Found& found, const RunRequest& request,
                           const engine::Blueprint& blueprint, std::uint64_t data_digest);

}  // namespace kzero::run
