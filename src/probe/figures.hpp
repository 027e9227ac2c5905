// The figures of a launch's ranks, nodes and links, and the places that are odd by these figures.
#pragma once

#include <string>
#include <vector>

#include "probe/links.hpp"
#include "probe/speed.hpp"

namespace kzero::probe {

/// A node's wall clock, in seconds.
struct WallClock {
  double ahead = unmeasured;     // of the clock that it is compared with
  double accuracy = unmeasured;  // largest error of `ahead`
};

struct NodeFigures {
  Speed slowest;                         // of its ranks, each figure by itself
  Link within{unmeasured, unmeasured};   // median of its neighbours' links
  Link between{unmeasured, unmeasured};  // best of its links to other nodes
  WallClock clock;                       // against the median of all nodes
};

struct Figures {
  std::vector<Speed> ranks;
  std::vector<MeasuredLink> within, between;
  std::vector<NodeFigures> nodes;
};

/// Fills in the figures of nodes from those of their ranks and links, and from their wall clocks.
/// All clocks were compared with the same clock.
void summarize(Figures& figures, const grid::Nodes& nodes, const std::vector<WallClock>& clocks);

/// A figure by which a place is odd.
struct Weakness {
  std::string what;  // "products"
  std::string unit;  // of figure and typical
  double figure = 0, typical = 0;
  double factor = 1;  // by which the figure is worse than the typical one; 0: not a ratio
};

/// A place that is the odd one out: a node, a rank of a single node, or the link of two nodes.
struct Finding {
  std::vector<int> nodes;  // two for a link
  int rank = -1;           // the slowest one, if ranks were compared
  std::vector<Weakness> weaknesses;
};

/// A place can only be odd (outliers.hpp) if its ratio to the typical figure exceeds these factors.
/// The factor for latencies is larger, because they depend on the route even on healthy machines.
inline constexpr double slow_factor = 1.5, late_factor = 3;

/// Clocks that differ by more are reported. kzero uses them for the job's end and for file times.
inline constexpr double largest_clock_difference = 1;

/// Returns the odd nodes in order (on a single node the odd ranks), then the slow links between
/// nodes that are not odd themselves.
std::vector<Finding> find_odd(const Figures& figures, const grid::Nodes& nodes);

/// Describes where a finding is: "node3", "rank 2 on node1", "the link of node1 and node7".
std::string describe_place(const Finding& finding, const grid::Nodes& nodes);

/// Describes why, in one line: "products 9.8 times slower (0.0046 Tflop/s, typical 0.045)".
std::string describe_reasons(const Finding& finding);

}  // namespace kzero::probe
