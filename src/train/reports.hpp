// Reports of a run at its start and end, gathered from all ranks into plain records.
#pragma once

#include "deck/config.hpp"
#include "grid/process_grid.hpp"
#include "memory/ledger.hpp"
#include "metrics/console.hpp"
#include "metrics/records.hpp"

namespace kzero::train {

std::vector<metrics::CategoryBytes> categories(const memory::Bytes& planned,
                                               const memory::Bytes& peak);

/// Returns one row per rank on the root, none elsewhere. `resident_at_start` is this process's peak
/// before its slabs were taken. Collective over `world`.
std::vector<metrics::MemoryRow> memory_rows(const grid::Group& world, const memory::Bytes& planned,
                                            const memory::Bytes& peak, Index resident_at_start);

/// The display of the run on rank 0; every other rank is silent.
metrics::Screen screen_of(deck::ProgressStyle style, Index rank);

/// Returns the node names of all ranks on the root. Collective over `world`.
std::vector<std::string> host_names(const grid::Group& world);

}  // namespace kzero::train
