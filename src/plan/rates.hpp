// The rates of an estimate: given, or measured on this machine. Measured rates assume that all
// machines are like this one, and idle.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "deck/config.hpp"
#include "plan/block_rate.hpp"
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
  /// Measures the missing rates with `threads` threads, which is one on a busy machine: threads
  /// that wait for each other and for their cores are slower by orders of magnitude. Operations are
  /// measured on a block like the deck's, which requires Kokkos initialized with the same number of
  /// threads.
  RateSource(const GivenRates& given, const deck::Config& config, Index threads, bool is_busy);

  /// Returns the rates of a rank with `threads` threads. Measured operation and memory rates scale
  /// with their number. If a node has more threads than cores, a thread has `core_share` of a core,
  /// and every measured rate is that share: cores also copy a node's messages.
  Rates of_rank(Index threads, double core_share = 1) const;

  /// Returns why measured rates may be wrong; empty if they are not.
  std::vector<std::string> warnings() const;

 private:
  double taken(const MeasuredRate& measured);

  GivenRates given_;
  Rates measured_;
  Index threads_;
  double spread_ = 1;
  bool is_busy_;
};

}  // namespace kzero::plan
