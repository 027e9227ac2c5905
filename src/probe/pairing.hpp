// Decides which pairs measure messages. In each round of a tournament, everybody has a different
// partner, so that all pairs can send at the same time.
#pragma once

#include <vector>

namespace kzero::probe {

/// Returns the number of rounds in which each of `players` meets every other (circle method).
int all_rounds(int players);

/// Returns up to `most` rounds, evenly spread over all rounds. Their number therefore does not grow
/// with the number of players.
std::vector<int> chosen_rounds(int players, int most);

/// Returns the partner of a player in a round, or -1 if the player rests. If the number of players
/// is odd, a different one rests in each round.
int partner_of(int player, int players, int round);

}  // namespace kzero::probe
