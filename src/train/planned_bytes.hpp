// The memory plan: the bytes of all buffers, from the same code that allocates them (buffers.hpp).
#pragma once

#include "memory/ledger.hpp"
#include "train/blueprint.hpp"

namespace kzero::train {

/// Returns the planned bytes of a rank, by category; the deck is resolved. Nothing is allocated.
memory::Bytes planned_bytes(const deck::Config& config, const Machine& machine,
                            const Ingredients& given = {});
memory::Bytes planned_bytes(const deck::Config& config, const Blueprint& blueprint, Index threads);

}  // namespace kzero::train
