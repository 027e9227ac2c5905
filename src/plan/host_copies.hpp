// The copies of a replayed step between a device and its host: of offloaded optimizer state
// (zero.offload) and of blocks' kept inputs (recompute.offload).
#pragma once

#include "plan/simulated_rank.hpp"
#include "plan/step_outline.hpp"

namespace kzero::plan {

/// Returns the seconds of all copies of a step, one after another; 0 if the rates are not known.
double copy_seconds(const StepOutline& outline, const HostRates& host);

class HostCopies {
 public:
  /// `rank` and `outline` must outlive this. Without known rates nothing is copied.
  HostCopies(SimulatedRank& rank, const HostRates& rates, const StepOutline& outline)
      : rank_(rank), rates_(rates), outline_(outline) {}

  /// Updates a unit, which takes `seconds`. On the host, one part of the gradients is copied while
  /// another is updated, as optim::CpuOffloadOptimizer does. Returns when the last part has been
  /// copied back; 0 without copies.
  double update(Index unit, double seconds);

  /// Copies a block's kept input to the host in forward, and back before backward, as
  /// model::ResidualStream does: the input of the block before while a block computes.
  void copy_kept(const OutlinedOperation& operation);

 private:
  double begin(double bytes, std::string_view name, Index unit);
  void fetch_kept(double bytes, Index unit);

  SimulatedRank& rank_;
  HostRates rates_;
  const StepOutline& outline_;
  double leaving_input_ = 0, arriving_input_ = 0;  // the times of their arrival
  Index arriving_unit_ = -1;                       // -1: none
};

}  // namespace kzero::plan
