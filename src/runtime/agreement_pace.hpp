// Decides how often ranks agree on a stop while they work in short rounds. An agreement makes all
// ranks wait for the slowest, which costs more than a round of less than a millisecond.
#pragma once

#include <chrono>

#include "base/types.hpp"

namespace kzero::runtime {

/// Counts rounds, and adapts the number of rounds between two agreements to the time that they
/// take. All ranks call the functions alike and get the same answers, because they also agree on
/// the time: a single number carries both, and its maximum over ranks is used.
class AgreementPace {
 public:
  using Clock = std::chrono::steady_clock;

  /// If rounds take at least this long, each has an agreement. The first round always has one.
  static constexpr std::chrono::milliseconds min_interval{50};

  /// Counts a round that is about to begin. Returns whether the ranks agree before it.
  bool is_due() { return ++rounds_ >= interval_; }

  /// Packs `wish`, from 0 to 2^20, and the time since the last agreement into the number to agree
  /// on.
  Index pack(Index wish, Clock::time_point now = Clock::now()) const;

  /// Takes the maximum of the packed numbers and returns the maximum of the wishes.
  Index unpack(Index agreed, Clock::time_point now = Clock::now());

  /// Makes the next round have an agreement.
  void restart() { interval_ = 1; }

 private:
  Index interval_ = 1;  // rounds between two agreements
  Index rounds_ = 0;    // since the last one
  Clock::time_point last_{};
};

}  // namespace kzero::runtime
