#include "probe/links.hpp"

#include <gtest/gtest.h>

#include <set>

namespace kzero::probe {
namespace {

TEST(Pairing, lets_everybody_meet_everybody_once) {
  for (int players = 1; players <= 17; ++players) {
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < all_rounds(players); ++round) {
      int resting = 0;
      for (int player = 0; player < players; ++player) {
        const int partner = partner_of(player, players, round);
        if (partner < 0) ++resting;
        if (partner < 0) continue;
        ASSERT_NE(partner, player);
        ASSERT_EQ(partner_of(partner, players, round), player);
        if (player < partner) {
          EXPECT_TRUE(met.emplace(player, partner).second);
        }
      }
      EXPECT_EQ(resting, players % 2);
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(players * (players - 1) / 2));
  }
}

TEST(Pairing, takes_few_rounds_of_many_players_with_other_partners_in_each) {
  EXPECT_EQ(chosen_rounds(4, 6), (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(chosen_rounds(1, 6).empty());
  const auto rounds = chosen_rounds(1000, 6);
  EXPECT_EQ(rounds.size(), 6U);
  for (int player = 0; player < 1000; ++player) {
    std::set<int> partners;
    for (const int round : rounds) partners.insert(partner_of(player, 1000, round));
    EXPECT_EQ(partners.size(), 6U) << player;
  }
}

}  // namespace
}  // namespace kzero::probe
