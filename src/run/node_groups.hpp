// Groups ranks by node and sums their times by group. A run on a single node has one group per
// rank. This is plain arithmetic on the root and does not measure the times.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "metrics/node_times.hpp"

namespace kzero::run {

/// The time of one rank in some steps.
struct RankTime {
  double seconds = 0;  // of the steps
  double waited = 0;   // part of `seconds` spent waiting for messages of other ranks
  double no_core = 0;  // part of `waited` in which the rank was ready but had no core
  double joules = 0;   // that the rank has read; not of the steps alone

  double computed() const { return seconds - waited; }
  RankTime& operator+=(const RankTime& other) {
    seconds += other.seconds;
    waited += other.waited;
    no_core += other.no_core;
    joules += other.joules;
    return *this;
  }
};

/// The ranks of a node, or a single rank if by_rank().
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

  /// Sums the times over an interval of `steps` steps that ends after `step` steps. `times` has one
  /// entry per rank, in rank order. `slow` has one entry per group.
  metrics::NodesRecord record(std::span<const RankTime> times, Index step, Index steps,
                              const std::vector<bool>& slow) const;

 private:
  bool by_rank_ = false;
  std::vector<NodeGroup> groups_;
};

/// Returns the rank of a group that computed longest; the lowest rank if several did.
Index busiest_rank(const NodeGroup& group, std::span<const RankTime> times);

}  // namespace kzero::run
