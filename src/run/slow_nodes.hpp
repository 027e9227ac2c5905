// Finds nodes for which the others wait. All ranks need the same time for a step, so the node that
// the others wait for computes longer. If everyone waits for the network, all compute equally long
// and no node is slow.
//
// A node that lacks cores is also late inside messages, where it seems to wait like the others. If
// a rank computes longer than the others, its time without a core during waits therefore counts,
// too. It does not count for other ranks, because it delays nobody.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "run/node_groups.hpp"

namespace kzero::run {

class SlowNodes {
 public:
  /// `operations` are each rank's operations per step according to the deck. A rank with more of
  /// them may take proportionally longer. `share` is run.slow_node_share; 0 means that no node is
  /// ever slow.
  SlowNodes(const NodeGroups& groups, std::vector<double> operations, double share);

  /// Judges the ranks' times in an interval of `steps` steps. Returns one line for each node that
  /// has become slow or is no longer slow. A node becomes slow when the others have waited for it
  /// by more than the share in two consecutive intervals. It stays slow until they have waited less
  /// than half as long in two.
  std::vector<std::string> judge(std::span<const RankTime> times, Index steps);

  /// One entry per group.
  std::vector<bool> slow() const;

 private:
  struct State {
    bool slow = false;
    Index in_row = 0;  // consecutive intervals that contradict `slow`
  };
  /// The result of an interval for a group.
  struct Finding {
    std::size_t group = 0;
    Index busiest = 0;          // rank
    double seconds = 0;         // computing time of the busiest rank
    double others = 0;          // the others' computing time for as many operations
    double no_core = 0;         // seconds of waits in which the busiest rank had no core
    double others_no_core = 0;  // the same for the others
    double waited = 0;          // share of the steps' time that the others waited for this group
    bool is_one = false;        // only one of the group's several ranks is slow

    double more_computed() const { return seconds - others; }
    double more_without_core() const;
  };

  std::vector<Finding> busiest(std::span<const RankTime> times) const;
  std::vector<double> seconds_scaled(const std::vector<Finding>& found, double operations) const;
  void compare(std::vector<Finding>& found, double mean_seconds) const;
  std::vector<Finding> findings(std::span<const RankTime> times) const;
  std::string name(const Finding& finding) const;
  std::string slow_line(const Finding& finding, Index steps) const;
  std::string quick_line(const Finding& finding, Index steps) const;

  const NodeGroups& groups_;
  std::vector<double> operations_;
  double share_;
  std::vector<State> states_;
};

}  // namespace kzero::run
