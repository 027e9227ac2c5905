// Checks what a restart must not change: the function that the saved weights compute, the state
// that the optimizer keeps, and the order of the training data. Each error message says how to
// continue. Does not read weights.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/folder/search.hpp"
#include "checkpoint/format/manifest.hpp"
#include "deck/config.hpp"
#include "engine/blueprint.hpp"
#include "run/trainer.hpp"

namespace kzero::run {

/// Returns whether the checkpoint holds the state of the blueprint's optimizer.
bool is_of_same_optimizer(const checkpoint::Found& found, const engine::Blueprint& blueprint);

/// The files that a run reads apart from its deck.
struct Sources {
  std::uint64_t data_digest = 0;  // of the training data
  std::uint64_t base_hash = 0;    // of the frozen weights
};

/// Throws Error(usage) unless all of these hold:
/// - The checkpoint has the deck's adapters, trained on the same frozen weights, or neither has
/// any.
/// - The checkpoint has the deck's model. Every key that the model's output depends on is compared,
///   including keys that do not affect shapes.
/// - It contains the state of the deck's optimizer, is of step 0, or the deck sets
///   checkpoint.reset_optimizer.
/// - The run would continue with the next sample of the same data, or checkpoint.allow_new_data
///   permits other data.
/// `blueprint` and `sources` are the run's.
void require_same_training(const checkpoint::Found& found, const RunRequest& request,
                           const engine::Blueprint& blueprint, const Sources& sources);

// Compares the learning rate before and after a restart. A schedule that depends on train.steps
// jumps if a run is extended.

/// Returns a warning if the first step of a run that resumes from the checkpoint has a learning
/// rate far from that of the last step before it, and the schedule of the checkpoint's deck had
/// planned another one. It has both rates, and how to avoid a rise. Empty otherwise, and if no step
/// is left.
std::string rate_warning(const checkpoint::Manifest& manifest, const deck::Config& config);

}  // namespace kzero::run
