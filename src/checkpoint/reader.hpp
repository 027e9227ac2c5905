// Reads ranges of parameters out of a checkpoint, whichever files hold them, so that any grid loads
// what another grid saved.
#pragma once

#include <span>
#include <vector>

#include "checkpoint/folder/search.hpp"
#include "checkpoint/format/state_shard.hpp"

namespace kzero::checkpoint {

/// Fills the shards' arrays by their names, bit for bit what was saved; an array that is empty or
/// not named is not wanted. Opens only the shard_files that hold wanted ranges and reads little
/// more than those, and nothing for the arrays that the search has filled, which must be untouched
/// since. Throws Error(files) naming the array, or parameter and range, that is nowhere, or the
/// file at fault. Each rank reads for itself: not collective.
void read(const Found& from, std::span<const StateShard> wanted);

/// Verifies any load on any grid: throws Error(files) unless the values of all ranks' shards, which
/// hold each element of the checkpoint once, have the hash of the manifest. Arrays in host memory
/// that the search has filled, and which must be untouched since, were hashed by it. Collective
/// over `world`.
void require_saved_values(const grid::Group& world, const Found& found,
                          std::span<const StateShard> mine);

/// Throws Error(usage) naming the first difference if the model of `table` is not the one saved.
void require_same_parameters(const Found& found, const param::Table& table);

}  // namespace kzero::checkpoint
