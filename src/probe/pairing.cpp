#include "probe/pairing.hpp"

#include <algorithm>

namespace kzero::probe {

namespace {

/// Adds a resting player if their number is odd.
int even(int players) { return players + players % 2; }

}  // namespace

int all_rounds(int players) { return players < 2 ? 0 : even(players) - 1; }

std::vector<int> chosen_rounds(int players, int most) {
  const int all = all_rounds(players), count = std::min(all, most);
  std::vector<int> rounds;
  rounds.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    rounds.push_back(static_cast<int>(static_cast<long>(i) * all / count));
  return rounds;
}

int partner_of(int player, int players, int round) {
  // The numbers of partners add up to the round, modulo the number of rounds. The player that would
  // meet itself meets the last one, which is outside the circle.
  const int circle = all_rounds(players), last = circle;
  if (circle == 0) return -1;
  if (player == last) {
    const long half = (circle + 1) / 2;  // the inverse of 2 modulo an odd number
    return static_cast<int>(round * half % circle);
  }
  const int other = ((round - player) % circle + circle) % circle;
  const int partner = other == player ? last : other;
  return partner < players ? partner : -1;
}

}  // namespace kzero::probe
