// Measures the links of a launch: between neighbours on each node, and between nodes.
#pragma once

#include <limits>
#include <vector>

#include "grid/nodes.hpp"
#include "probe/ping.hpp"

namespace kzero::probe {

inline constexpr double unmeasured = std::numeric_limits<double>::quiet_NaN();

/// A measured link between two places, which are two ranks of a node or two nodes.
struct MeasuredLink {
  int one = 0, other = 0;
  Link link;
};

/// One rank of each node, its leader, measures links to other nodes. All pairs of a round measure
/// at once. There are at most this many rounds, so the time does not grow with the number of nodes.
inline constexpr int most_rounds = 6;

/// Measures links between nodes. The root gets all of them, with node numbers; the other ranks get
/// none. Collective over `world`; `nodes` are the nodes of its ranks.
std::vector<MeasuredLink> measure_between(const grid::Group& world, const grid::Nodes& nodes);

/// Measures links between neighbouring ranks of each node: first even ranks with the next one, then
/// odd ranks. The root gets all of them, with rank numbers; the other ranks get none. Collective
/// over `world`.
std::vector<MeasuredLink> measure_within(const grid::Group& world, const grid::Nodes& nodes);

/// Returns the best figures among the links of a place; unmeasured if it has none. One bad end
/// makes a link slow. A place with two or more links whose best link is slow is therefore itself
/// slow.
Link best_of(const std::vector<MeasuredLink>& links, int place);

}  // namespace kzero::probe
