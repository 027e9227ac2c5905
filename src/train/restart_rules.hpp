// What a restart may not change: the function that the saved weights are of, and the order of the
// training data. Each refusal says how to go on. Does not read weights.
#pragma once

#include <cstdint>

#include "checkpoint/search.hpp"
#include "param/spec.hpp"
#include "train/trainer.hpp"

namespace kzero::train {

/// Throws Error(usage) unless the checkpoint is of the deck's model, by every key that the model's
/// value depends on, whether or not shapes do, and the run would go on with the next sample of the
/// same data. `table` is the deck's model; `data_digest` is of its training data.
void require_same_training(const checkpoint::Found& found, const RunRequest& request,
                           const param::Table& table, std::uint64_t data_digest);

}  // namespace kzero::train
