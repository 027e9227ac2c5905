// The time of collectives on a two-level machine: ranks within a node, and nodes. Traffic between
// nodes is limited by each rank's rate and by the rate of the entire node. Message latency and
// concurrent collectives of other groups are ignored.
#pragma once

#include "base/types.hpp"

namespace kzero::plan {

/// Bytes per second. Node n holds ranks from n * node_ranks. The last node may have fewer ranks.
struct Network {
  Index node_ranks = 1;
  double within_node = 0;   // of a rank to others on its node
  double rank_between = 0;  // of a rank to other nodes
  double node_between = 0;  // of all ranks of a node to other nodes
};

/// Groups of `size` ranks that together are all `ranks`. Members of a group are `stride` apart.
struct Groups {
  Index ranks = 1, size = 1, stride = 1;
};

/// Where a rank sends: to its successor in the group, or equally to every other rank.
enum class Pattern { ring, exchange };

/// Returns the seconds per byte sent by every rank, with all groups active at the same time. The
/// slowest rank or node determines the result.
double seconds_per_byte(const Network& network, const Groups& groups, Pattern pattern);

}  // namespace kzero::plan
