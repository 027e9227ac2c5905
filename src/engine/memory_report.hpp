// The memory of a run: the plan, which is the bytes of all buffers, computed by the code that
// allocates them (buffers.hpp), and the planned and measured memory of all ranks as records.
#pragma once

#include "engine/blueprint.hpp"
#include "grid/process_grid.hpp"
#include "memory/ledger.hpp"
#include "metrics/records.hpp"

namespace kzero::engine {

/// Returns a row for each category in use.
std::vector<metrics::CategoryBytes> categories(const memory::Bytes& planned,
                                               const memory::Bytes& peak);

/// Returns one row per rank on the root, and no rows on other ranks. `resident_at_start` is this
/// process's peak resident bytes before its slabs were allocated. Collective over `world`.
std::vector<metrics::MemoryRow> memory_rows(const grid::Group& world, const memory::Bytes& planned,
                                            const memory::Bytes& peak, Index resident_at_start);

/// Returns the planned bytes of a rank by category. Allocates nothing. The deck must be resolved.
memory::Bytes planned_bytes(const deck::Config& config, const Blueprint& blueprint, Index threads);

}  // namespace kzero::engine
