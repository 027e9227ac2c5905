// The rates of an estimate: given ones, and for the rest what this machine reaches, measured in a
// fraction of a second. A measured rate assumes ranks that have their cores to themselves, all on
// machines like this one.
#pragma once

#include <optional>

#include "deck/config.hpp"
#include "plan/time.hpp"

namespace kzero::plan {

/// Rates that are given, per second.
struct GivenRates {
  std::optional<double> operations, memory_bytes, sent_bytes;
};

/// Returns whether this build's arithmetic can be measured without its device: on hosts.
bool can_measure_blocks();

class RateSource {
 public:
  /// Measures the rates that are not given, with `threads` threads. Operations are measured on a
  /// block like the deck's, for which Kokkos must be initialized with as many threads; the rest
  /// needs none.
  RateSource(const GivenRates& given, const deck::Config& config, Index threads);

  /// Returns the rates of a rank with this many threads: measured operations and memory scale with
  /// them.
  Rates of_rank(Index threads) const;

 private:
  GivenRates given_;
  Rates measured_;
  Index threads_;
};

}  // namespace kzero::plan
