// How the ranks of a data group are spread over nodes.
#pragma once

#include "base/types.hpp"

namespace kzero {

/// A data group of nodes * node_ranks ranks. Rank place * nodes + node is the one with number
/// `place` on a node, so ranks with the same place on their nodes are neighbours.
struct NodeShape {
  Index nodes = 1;  // 0 if nodes have different numbers of the group's ranks
  Index node_ranks = 1;

  bool is_regular() const { return nodes > 0; }
  Index node_of(Index rank) const { return rank % nodes; }
  Index place_of(Index rank) const { return rank / nodes; }
  Index rank_at(Index place, Index node) const { return place * nodes + node; }
  /// The number of a rank if they are counted node by node.
  Index position_of(Index rank) const { return node_of(rank) * node_ranks + place_of(rank); }
  /// The inverse of position_of().
  Index rank_of(Index position) const {
    return rank_at(position % node_ranks, position / node_ranks);
  }
};

}  // namespace kzero
