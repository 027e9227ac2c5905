// Measures the links of a launch: between neighbours on each node, and between nodes.
#pragma once

#include <limits>
#include <vector>

#include "grid/nodes.hpp"
#include "probe/ping.hpp"

namespace kzero::probe {

inline constexpr double unmeasured = std::numeric_limits<double>::quiet_NaN();

/// A measured link between two ranks of a node, or between two nodes.
struct MeasuredLink {
  int one = 0, other = 0;
  Link link;
};

/// The leaders of all nodes measure in pairs, one rank per node, all pairs of a round at the same
/// time. Each node meets at most this many others, so the time does not grow with their number.
inline constexpr int most_rounds = 6;

/// Measures links between nodes. The root gets all links, with node numbers, and the others none.
/// Collective over `world`, whose nodes are `nodes`.
std::vector<MeasuredLink> measure_between(const grid::Group& world, const grid::Nodes& nodes);

/// Measures links between neighbouring ranks of each node: first even ranks with the next, then odd
/// ones. The root gets all links, with rank numbers, and the others none. Collective over `world`.
std::vector<MeasuredLink> measure_within(const grid::Group& world, const grid::Nodes& nodes);

/// Returns the best figures among a place's links, or unmeasured without a link. One bad end makes
/// a link slow, so a place with two or more links is the bad end if its best is slow.
Link best_of(const std::vector<MeasuredLink>& links, int place);

}  // namespace kzero::probe
