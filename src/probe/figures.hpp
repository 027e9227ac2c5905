// The figures of a launch's ranks, nodes and links, and the places that are odd by them.
#pragma once

#include <string>
#include <vector>

#include "probe/links.hpp"
#include "probe/speed.hpp"

namespace kzero::probe {

/// A node's wall clock, in seconds.
struct WallClock {
  double ahead = unmeasured;     // of the reference clock
  double accuracy = unmeasured;  // possible error of `ahead`
};

struct NodeFigures {
  Speed slowest;                         // of its ranks, for each figure separately
  Link within{unmeasured, unmeasured};   // median of the links of neighbours
  Link between{unmeasured, unmeasured};  // best of the links to other nodes
  WallClock clock;                       // relative to the median of all nodes
};

struct Figures {
  std::vector<Speed> ranks;
  std::vector<MeasuredLink> within, between;
  std::vector<NodeFigures> nodes;
};

/// Fills in the nodes' figures from those of ranks and links and from the nodes' wall clocks. All
/// `clocks` must have the same reference.
void summarize(Figures& figures, const grid::Nodes& nodes, const std::vector<WallClock>& clocks);

/// A figure by which a place is odd.
struct Weakness {
  std::string what;  // "products"
  std::string unit;  // of figure and typical
  double figure = 0, typical = 0;
  double factor = 1;  // how much worse than typical; 0: not a ratio
};

/// A place that is the odd one out: a node, a rank of a single node, or the link of two nodes.
struct Finding {
  std::vector<int> nodes;  // two for a link
  int rank = -1;           // the slowest, if ranks were compared
  std::vector<Weakness> weaknesses;
};

/// A place may be odd (odd.hpp) beyond these ratios to the typical figure. The ratio for latencies
/// is larger, because they also depend on the network path on healthy machines.
inline constexpr double slow_factor = 1.5, late_factor = 3;

/// In seconds. Clocks that differ by more are wrong. The job's end and file times depend on them.
inline constexpr double largest_clock_difference = 1;

/// Returns the odd nodes in order, or the odd ranks of a single node. Slow links between nodes that
/// are not odd follow.
std::vector<Finding> find_odd(const Figures& figures, const grid::Nodes& nodes);

/// Describes the place of a finding: "node3", "rank 2 on node1", "the link of node1 and node7".
std::string describe_place(const Finding& finding, const grid::Nodes& nodes);

/// Describes the reasons in one line: "products 9.8 times slower (0.0046 Tflop/s, typical 0.045)".
std::string describe_reasons(const Finding& finding);

}  // namespace kzero::probe
