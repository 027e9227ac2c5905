// Pairs the places that exchange messages, as in the rounds of a tournament. In a round each place
// has at most one partner, so all pairs of the round can send at once.
#pragma once

#include <vector>

namespace kzero::probe {

/// The number of rounds after which each of `players` has met every other one (circle method).
int all_rounds(int players);

/// Returns at most `most` rounds, evenly spread over all rounds. Their number then does not grow
/// with the number of players.
std::vector<int> chosen_rounds(int players, int most);

/// Returns the partner of a player in a round, or -1 if the player rests. If the number of players
/// is odd, a different player rests in each round.
int partner_of(int player, int players, int round);

}  // namespace kzero::probe
