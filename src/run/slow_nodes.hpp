// Finds nodes for which the others wait. All ranks of a run take the same time for a step, so the
// node that the others wait for is the one that computes for longer than they do. Where everyone
// waits for the network, all compute for equally long, and no node is slow.
//
// A node that lacks cores is late within messages, too, where it seems to wait as the others do. So
// for a rank that computes for longer than the others, the time for which it had no core while it
// waited counts as well. It does not for other ranks: what they lack while they wait holds up
// nobody.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "run/node_groups.hpp"

namespace kzero::run {

class SlowNodes {
 public:
  /// `operations` are what each rank computes in a step by the deck: a rank that is given more than
  /// others may take longer in proportion. `share` is run.slow_node_share; 0: no node is ever slow.
  SlowNodes(const NodeGroups& groups, std::vector<double> operations, double share);

  /// Judges the ranks' times in an interval of `steps` steps. Returns the lines to print: one for
  /// each node that has become slow, and one for each that is no longer slow. A node becomes slow
  /// when the others have waited for it by more than the share in two intervals in a row; it is
  /// slow until they have waited less than half as long in two intervals in a row.
  std::vector<std::string> judge(std::span<const RankTime> times, Index steps);

  /// One entry for each group.
  std::vector<bool> slow() const;

 private:
  struct State {
    bool slow = false;
    Index in_row = 0;  // intervals that speak against `slow`
  };
  /// What an interval says of a group.
  struct Finding {
    std::size_t group = 0;
    Index busiest = 0;          // rank
    double seconds = 0;         // that the busiest rank computed
    double others = 0;          // seconds that others would compute with as many operations
    double no_core = 0;         // seconds of waits in which the busiest rank had no core
    double others_no_core = 0;  // the same of others
    double waited = 0;          // share of the steps' time that the others waited for this group
    bool is_one = false;        // a single rank of the group's several is slow

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
