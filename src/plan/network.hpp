// The time of collectives on a machine of two levels: ranks within a node, and nodes. What leaves a
// node is limited twice, by what one rank can send and by what the node's ranks share. The latency
// of messages is left out, and so is what other groups' collectives do at the same time.
#pragma once

#include "base/types.hpp"

namespace kzero::plan {

/// Bytes a second. Node n holds ranks n * node_ranks and on, the last one perhaps fewer.
struct Network {
  Index node_ranks = 1;
  double within_node = 0;   // of a rank to others of its node
  double rank_between = 0;  // of a rank to other nodes
  double node_between = 0;  // of all ranks of a node to other nodes
};

/// Groups of `size` ranks that together are all `ranks`; members of one lie `stride` apart.
struct Groups {
  Index ranks = 1, size = 1, stride = 1;
};

/// Says where a rank sends: to its successor in the group, or to each other rank alike.
enum class Pattern { ring, exchange };

/// Returns the seconds for each byte that every rank sends, in all groups at the same time: those
/// of the slowest rank or node.
double seconds_per_byte(const Network& network, const Groups& groups, Pattern pattern);

}  // namespace kzero::plan
