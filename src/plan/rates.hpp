// The rates of an estimate: given, or measured on this machine in a fraction of a second. Measured
// rates assume that all machines are like this one.
#pragma once

#include <optional>

#include "deck/config.hpp"
#include "plan/time.hpp"

namespace kzero::plan {

/// Given rates, per second.
struct GivenRates {
  std::optional<double> operations, memory_bytes, sent_bytes;
};

/// Returns whether this build's arithmetic can be measured without a device. True for host builds.
bool can_measure_blocks();

class RateSource {
 public:
  /// Measures the missing rates with `threads` threads. Operations are measured on a block like the
  /// deck's, which requires Kokkos initialized with the same number of threads.
  RateSource(const GivenRates& given, const deck::Config& config, Index threads);

  /// Returns the rates of a rank with `threads` threads. Measured operation and memory rates scale
  /// with their number. If a node has more threads than cores, a thread has `core_share` of a core,
  /// and every measured rate is that share: cores also copy a node's messages.
  Rates of_rank(Index threads, double core_share = 1) const;

 private:
  GivenRates given_;
  Rates measured_;
  Index threads_;
};

}  // namespace kzero::plan
