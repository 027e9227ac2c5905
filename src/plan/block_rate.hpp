// Measures how fast this machine trains a block like the deck's: GEMMs, attention and the kernels
// between them, in the deck's precision and GEMM back end. Blocks do almost all arithmetic of a
// step. A complete block includes costs that the GEMM rate does not show.
#pragma once

#include "deck/config.hpp"
#include "plan/timing.hpp"

namespace kzero::plan {

/// A rate per second, and how many times lower the median of its measurements was.
struct MeasuredRate {
  double rate = 0;
  double spread = 1;
};

/// Measures operations per second, forward and backward, as counted by model::flops_per_token.
/// Takes less than a second on an idle machine, and a few on a busy one. Requires Kokkos
/// initialized with `threads` threads, but not MPI.
MeasuredRate block_rate(const deck::Config& config, Index threads);

}  // namespace kzero::plan
