// The data groups of a launch on its nodes.
#pragma once

#include <span>
#include <vector>

#include "base/node_shape.hpp"

namespace kzero::grid {

/// Returns the nodes of a data group's ranks, numbered in the order of their first ranks.
/// `node_of_rank` has the node of each rank of the launch. Each `tensor` neighbouring ranks form a
/// tensor group.
std::vector<int> nodes_of_data_group(std::span<const int> node_of_rank, Index tensor,
                                     Index tensor_rank);

/// The shape that all data groups of a launch have. Not regular if their nodes differ.
NodeShape shape_of_data_groups(std::span<const int> node_of_rank, Index tensor);

/// Returns the ranks of a data group in the order of the shards that they own, that of NodeShape:
/// the shards of all ranks with one place on their nodes are contiguous. Returns the order of the
/// launch if `nodes` is 0.
std::vector<int> shard_order(std::span<const int> nodes_of_group, Index nodes);

}  // namespace kzero::grid
