// Ranks grouped by node, and times summed by group. On a single node, each rank is a group. Plain
// arithmetic on the root, independent of the times' source.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "metrics/node_times.hpp"

namespace kzero::run {

/// The time of one rank in some steps.
struct RankTime {
  double seconds = 0;  // of the steps
  double waited = 0;   // time of these in which the rank waited for messages of other ranks
  double no_core = 0;  // time of `waited` in which the rank was ready but had no core

  double computed() const { return seconds - waited; }
  RankTime& operator+=(const RankTime& other) {
    seconds += other.seconds;
    waited += other.waited;
    no_core += other.no_core;
    return *this;
  }
};

/// The ranks of a node, or one rank.
struct NodeGroup {
  std::string host;
  std::vector<Index> ranks;  // ascending
};

class NodeGroups {
 public:
  /// `hosts` are the node names of all ranks, in rank order.
  explicit NodeGroups(const std::vector<std::string>& hosts);

  bool by_rank() const { return by_rank_; }
  const std::vector<NodeGroup>& groups() const { return groups_; }

  /// Sums the times of all ranks, in rank order, over an interval of `steps` steps that ends after
  /// `step` steps. `slow` has one entry per group.
  metrics::NodesRecord record(std::span<const RankTime> times, Index step, Index steps,
                              const std::vector<bool>& slow) const;

 private:
  bool by_rank_ = false;
  std::vector<NodeGroup> groups_;
};

/// Returns the rank of a group that computed longest. Of several, returns the lowest.
Index busiest_rank(const NodeGroup& group, std::span<const RankTime> times);

}  // namespace kzero::run
