// Compares the learning rate before and after a restart. A schedule that depends on train.steps
// jumps if a run is extended.
#pragma once

#include <string>

#include "checkpoint/format/manifest.hpp"
#include "deck/config.hpp"

namespace kzero::run {

/// Returns a warning if the first step of a run that resumes from the checkpoint has a learning
/// rate far from that of the last step before it, and the schedule of the checkpoint's deck had
/// planned another one. It has both rates, and how to avoid a rise. Empty otherwise, and if no step
/// is left.
std::string rate_warning(const checkpoint::Manifest& manifest, const deck::Config& config);

}  // namespace kzero::run
