// Measures the links of a launch: between neighbours on each node, and between nodes.
#pragma once

#include <limits>
#include <vector>

#include "grid/group.hpp"
#include "grid/nodes.hpp"

namespace kzero::probe {

// Round trips between two ranks: the time of a small message, and the bytes per second of large
// ones. Waiting threads yield, so that ranks that share cores do not block each other.

/// Figures of one direction: half of a round trip.
struct Link {
  double latency_seconds = 0;   // of 8 bytes: the lowest median of eight round trips in a row
  double bytes_per_second = 0;  // fastest message of 4 MiB, or of a smaller one on a slow link
};

/// Measures the link to `partner`, which calls this at the same time with this rank as its partner.
/// Both get the same figures. Takes about a second, more if the link is so slow that a few messages
/// of 1 MiB take longer.
Link measure_link(const grid::Group& group, int partner);

/// Waits until every rank has called it. Sleeps between polls, so that ranks that are still
/// measuring keep their cores. Collective over `group`.
void wait_for_all(const grid::Group& group);

inline constexpr double unmeasured = std::numeric_limits<double>::quiet_NaN();

/// A measured link between two places, which are two ranks of a node or two nodes.
struct MeasuredLink {
  int one = 0, other = 0;
  Link link;
};

/// One rank of each node, its leader, measures links to other nodes. All pairs of a round measure
/// at once. There are at most this many rounds, so the time does not grow with the number of nodes.
inline constexpr int max_rounds = 6;

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

// Pairs the places that exchange messages, as in the rounds of a tournament. In a round each place
// has at most one partner, so all pairs of the round can send at once.

/// The number of rounds after which each of `players` has met every other one (circle method).
int all_rounds(int players);

/// Returns at most `max` rounds, evenly spread over all rounds. Their number then does not grow
/// with the number of players.
std::vector<int> chosen_rounds(int players, int max);

/// Returns the partner of a player in a round, or -1 if the player rests. If the number of players
/// is odd, a different player rests in each round.
int partner_of(int player, int players, int round);

}  // namespace kzero::probe
