// The memory plan: the bytes of all buffers, computed by the code that allocates them
// (buffers.hpp).
#pragma once

#include "engine/blueprint.hpp"
#include "memory/ledger.hpp"

namespace kzero::engine {

/// Returns the planned bytes of a rank by category. Allocates nothing. The deck must be resolved.
memory::Bytes planned_bytes(const deck::Config& config, const Blueprint& blueprint, Index threads);

}  // namespace kzero::engine
