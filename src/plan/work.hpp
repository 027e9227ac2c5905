// What a rank does in a step, counted from a deck and its blueprint.
#pragma once

#include "engine/blueprint.hpp"
#include "memory/ledger.hpp"
#include "plan/time.hpp"

namespace kzero::plan {

/// Returns the work of a step of a resolved deck. `held` are the planned bytes of a rank, which say
/// how much of the optimizer state is its own.
Work work_of_step(const deck::Config& config, const engine::Blueprint& blueprint,
                  const memory::Bytes& held, Index sent_bytes);

}  // namespace kzero::plan
