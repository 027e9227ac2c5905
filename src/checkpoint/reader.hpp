// Reads ranges of parameters from a checkpoint, whichever files hold them. Any grid can therefore
// load what another grid saved.
#pragma once

#include <span>
#include <vector>

#include "checkpoint/folder/search.hpp"
#include "checkpoint/format/state_shard.hpp"

namespace kzero::checkpoint {

/// Fills the shards' arrays by name with the saved bits. Arrays that are empty or have no name are
/// skipped. Opens only the shard files that hold wanted ranges, and reads little more than those
/// ranges. Reads nothing for the arrays that the search has filled; they must not have changed
/// since. Throws Error(files) that names the array, or the parameter and range, that is missing, or
/// the file at fault. Not collective: each rank reads for itself.
void read(const Found& from, std::span<const StateShard> wanted);

/// Verifies any load on any grid. The shards of all ranks must hold each element of the checkpoint
/// once. Throws Error(files) unless their values have the hash of the manifest. For arrays in host
/// memory that the search has filled, uses the search's hash; they must not have changed since.
/// Collective over `world`.
void require_saved_values(const grid::Group& world, const Found& found,
                          std::span<const StateShard> mine);

/// Returns the state array to use as weights: the master weights, or their moving average. Throws
/// Error(usage) if the checkpoint has no average, or is from before the first update.
std::string weights_in(const Found& found, bool is_average);

}  // namespace kzero::checkpoint
