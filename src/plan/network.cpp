#include "plan/network.hpp"

#include <algorithm>

namespace kzero::plan {

namespace {

struct Node {
  Index begin, end;  // ranks

  bool holds(Index rank) const { return rank >= begin && rank < end; }
};

/// Returns how many of the members first, first + stride, ... are on the node.
Index members_in(const Node& node, const Groups& groups, Index first) {
  const Index before = std::max<Index>(0, node.begin - first + groups.stride - 1) / groups.stride;
  const Index until = (node.end - 1 - first) / groups.stride + 1;
  return std::min(until, groups.size) - before;
}

/// Returns the fraction of a rank's bytes that leave its node.
double share_outside(const Node& node, const Groups& groups, Pattern pattern, Index rank) {
  const Index position = rank / groups.stride % groups.size;
  const Index first = rank - position * groups.stride;
  if (pattern == Pattern::ring)
    return node.holds(first + (position + 1) % groups.size * groups.stride) ? 0 : 1;
  return static_cast<double>(groups.size - members_in(node, groups, first)) /
         static_cast<double>(groups.size - 1);
}

}  // namespace

double seconds_per_byte(const Network& network, const Groups& groups, Pattern pattern) {
  if (groups.size == 1) return 0;
  double slowest = 0;
  for (Index begin = 0; begin < groups.ranks; begin += network.node_ranks) {
    const Node node{begin, std::min(begin + network.node_ranks, groups.ranks)};
    double leaves_node = 0;
    for (Index rank = node.begin; rank < node.end; ++rank) {
      const double outside = share_outside(node, groups, pattern, rank);
      slowest =
          std::max({slowest, (1 - outside) / network.within_node, outside / network.rank_between});
      leaves_node += outside;
    }
    slowest = std::max(slowest, leaves_node / network.node_between);
  }
  return slowest;
}

}  // namespace kzero::plan
