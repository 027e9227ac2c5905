// Finds slow nodes: those that the other nodes wait for. A step takes the same time on all ranks,
// so a slow node is one that computes longer than the others. If all nodes wait for the network,
// all compute equally long and no node is slow.
//
// A node that lacks cores is also late within messages, where it seems to wait like the others. For
// a rank that computes longer than the others, the time that it waited without a core therefore
// counts as well. For other ranks that time does not count, because it delays nobody.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "run/node_groups.hpp"

namespace kzero::run {

class SlowNodes {
 public:
  /// `operations` has the number of operations that the deck assigns to each rank in a step. A rank
  /// with more operations may take proportionally longer. `share` is run.slow_node_share; 0: no
  /// node is ever slow.
  SlowNodes(const NodeGroups& groups, std::vector<double> operations, double share);

  /// Sets other numbers of operations for the next intervals.
  void weigh(std::vector<double> operations) { operations_ = std::move(operations); }

  /// Judges the ranks' times in an interval of `steps` steps. Returns the lines to print: one for
  /// each node that has become slow or is no longer slow, and one that counts any beyond the first
  /// three. A node becomes slow when the others wait for it for more than `share` of the time in
  /// two successive intervals. It is no longer slow when they wait for less than half of `share` in
  /// two successive intervals.
  std::vector<std::string> judge(std::span<const RankTime> times, Index steps);

  /// One entry for each group.
  std::vector<bool> slow() const;

 private:
  struct State {
    bool slow = false;
    Index in_row = 0;  // successive intervals that contradict `slow`
  };
  /// The result of an interval for one group.
  struct Finding {
    std::size_t group = 0;
    Index busiest = 0;          // rank
    double seconds = 0;         // that the busiest rank computed
    double others = 0;          // seconds that the other groups would compute for its operations
    double no_core = 0;         // seconds of waits in which the busiest rank had no core
    double others_no_core = 0;  // the same of the other groups
    double waited = 0;          // share of the steps' time that the others waited for this group
    bool is_one = false;        // only one of the group's ranks is slow

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
