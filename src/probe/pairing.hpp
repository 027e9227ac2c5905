// Who measures messages with whom: rounds of a tournament in which everybody has a partner of its
// own, so that all pairs of a round can send at once.
#pragma once

#include <vector>

namespace kzero::probe {

/// The number of rounds after which each of `players` has met every other: the circle method.
int all_rounds(int players);

/// Returns up to `most` of the rounds, evenly spread over all of them, so that the number of rounds
/// does not grow with the number of players.
std::vector<int> chosen_rounds(int players, int most);

/// Returns the partner of a player in a round, or -1 if the player rests. One rests in each round
/// if their number is odd, another one each time.
int partner_of(int player, int players, int round);

}  // namespace kzero::probe
