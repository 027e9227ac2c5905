#include "runtime/agreement_pace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace kzero::runtime {
namespace {

using Clock = AgreementPace::Clock;
using std::chrono::microseconds;

/// Rounds between agreements, for ranks with the given times per round.
std::vector<Index> intervals(const std::vector<Index>& round_microseconds, int agreements) {
  std::vector<AgreementPace> ranks(round_microseconds.size());
  std::vector<Clock::time_point> now(ranks.size(), Clock::now());
  std::vector<Index> found;
  for (Index rounds = 1; std::ssize(found) < agreements; ++rounds) {
    Index due = 0, agreed = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      due += ranks[i].is_due() ? 1 : 0;
      agreed = std::max(agreed, ranks[i].pack(0, now[i]));
    }
    EXPECT_TRUE(due == 0 || due == std::ssize(ranks)) << "ranks differ";
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (due > 0) {
        EXPECT_EQ(ranks[i].unpack(agreed, now[i]), 0);
      }
      now[i] += microseconds(round_microseconds[i]);
    }
    if (due == 0) continue;
    found.push_back(rounds);
    rounds = 0;
  }
  return found;
}

TEST(AgreementPace, LongRoundsAllHaveAnAgreement) {
  EXPECT_EQ(intervals({50'000}, 4), (std::vector<Index>{1, 1, 1, 1}));
  EXPECT_EQ(intervals({100, 3'000'000}, 4), (std::vector<Index>{1, 1, 1, 1}))
      << "the slowest counts";
}

TEST(AgreementPace, ShortRoundsShareOneAndRanksGetTheSameAnswers) {
  EXPECT_EQ(intervals({10'000, 1'000}, 6), (std::vector<Index>{1, 1, 2, 4, 5, 5}));
}

TEST(AgreementPace, AWishArrivesWhateverTheTimes) {
  AgreementPace one, two;
  const auto now = Clock::now();
  EXPECT_TRUE(one.is_due());
  EXPECT_TRUE(two.is_due());
  const Index agreed = std::max(one.pack(0, now + std::chrono::hours(100)), two.pack(783, now));
  EXPECT_EQ(one.unpack(agreed, now), 783);
  EXPECT_EQ(two.unpack(agreed, now), 783);
}

TEST(AgreementPace, StartsAgainWithTheNextRound) {
  AgreementPace pace;
  auto now = Clock::now();
  for (int round = 0; round < 40; ++round, now += microseconds(10)) {
    if (pace.is_due()) pace.unpack(pace.pack(0, now), now);
  }
  EXPECT_FALSE(pace.is_due());
  pace.restart();
  EXPECT_TRUE(pace.is_due());
}

}  // namespace
}  // namespace kzero::runtime
