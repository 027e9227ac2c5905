// How the ranks of a data group are spread over nodes.
#pragma once

#include <span>
#include <vector>

#include "base/types.hpp"

namespace kzero::grid {

/// A data group of nodes * node_ranks ranks. `nodes` is 0 if nodes have different numbers of them.
struct NodeShape {
  Index nodes = 1;
  Index node_ranks = 1;

  bool is_regular() const { return nodes > 0; }
};

/// The nodes of a data group's ranks, numbered in the order of their first ranks. `node_of_rank`
/// has the node of each rank of the launch, `tensor` of which form a tensor group.
std::vector<int> nodes_of_data_group(std::span<const int> node_of_rank, Index tensor,
                                     Index tensor_rank);

/// The shape that all data groups of a launch have. Not regular if their nodes differ.
NodeShape shape_of_data_groups(std::span<const int> node_of_rank, Index tensor);

/// The ranks of a data group in the order of the shards that they own. Ranks with the same place on
/// their nodes are neighbours: shard l * nodes + n belongs to the l-th rank of node n, so that the
/// shards of the ranks of one place are contiguous. The order of the launch if not regular.
std::vector<int> shard_order(std::span<const int> nodes_of_group, const NodeShape& shape);

}  // namespace kzero::grid
