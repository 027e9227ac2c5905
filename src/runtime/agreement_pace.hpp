// How often ranks agree on a stop while they work in short rounds. An agreement makes all ranks
// wait for the slowest, which costs more than a round where rounds take less than a millisecond.
#pragma once

#include <chrono>

#include "base/types.hpp"

namespace kzero::runtime {

/// Counts rounds, and adapts the number of them between two agreements to the time that they take.
/// All ranks call the functions alike and get the same answers, because the time is agreed on, too:
/// the maximum over ranks is taken of one number.
class AgreementPace {
 public:
  using Clock = std::chrono::steady_clock;

  /// Rounds that take at least this long each have an agreement; so does the first round.
  static constexpr std::chrono::milliseconds least_interval{50};

  /// Counts a round that is about to begin; returns whether the ranks agree before it.
  bool is_due() { return ++rounds_ >= interval_; }

  /// Returns the number to agree on: `wish`, from 0 to 2^20, and the time since the last agreement.
  Index pack(Index wish, Clock::time_point now = Clock::now()) const;

  /// Takes the maximum of the packed numbers, and returns that of the wishes.
  Index unpack(Index agreed, Clock::time_point now = Clock::now());

  /// Makes the next round have an agreement.
  void restart() { interval_ = 1; }

 private:
  Index interval_ = 1;  // rounds between two agreements
  Index rounds_ = 0;    // since the last one
  Clock::time_point last_{};
};

}  // namespace kzero::runtime
