// Measures the links of a launch: between neighbours on each node, and between nodes.
#pragma once

#include <limits>
#include <vector>

#include "grid/nodes.hpp"
#include "probe/ping.hpp"

namespace kzero::probe {

inline constexpr double unmeasured = std::numeric_limits<double>::quiet_NaN();

/// A measured link between two places: ranks within a node, nodes between them.
struct MeasuredLink {
  int one = 0, other = 0;
  Link link;
};

/// The leaders of all nodes measure in pairs, one rank a node, all pairs of a round at once. In at
/// most this many rounds each node meets as many others, so the time does not grow with the number
/// of nodes.
inline constexpr int most_rounds = 6;

/// Measures links between nodes. The root gets all of them, with node numbers, the others none.
/// Collective over `world`, whose ranks `nodes` has.
std::vector<MeasuredLink> measure_between(const grid::Group& world, const grid::Nodes& nodes);

/// Measures links between neighbouring ranks of each node: even ones with the next, then odd ones.
/// The root gets all of them, with rank numbers, the others none. Collective over `world`.
std::vector<MeasuredLink> measure_within(const grid::Group& world, const grid::Nodes& nodes);

/// The best figures among the links of a place; unmeasured without a link. One bad end makes a link
/// slow, so a place whose best link is slow is itself the slow end, given two links of it.
Link best_of(const std::vector<MeasuredLink>& links, int place);

}  // namespace kzero::probe
