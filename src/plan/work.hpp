// Counts a rank's work per step from a deck and its blueprint.
#pragma once

#include "engine/blueprint.hpp"
#include "memory/ledger.hpp"
#include "plan/time.hpp"

namespace kzero::plan {

/// Returns the elements of the parameters that a rank updates, padding included.
Index updated_elements(const engine::Blueprint& blueprint);

/// Returns the work per step of a resolved deck. `held` is a rank's planned bytes, which determine
/// its share of the optimizer state.
Work work_of_step(const deck::Config& config, const engine::Blueprint& blueprint,
                  const memory::Bytes& held, Index sent_bytes);

}  // namespace kzero::plan
