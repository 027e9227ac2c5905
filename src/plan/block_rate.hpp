// Measures how fast this machine trains a block like the deck's: GEMMs, attention and the kernels
// between them, in the deck's precision and GEMM back end. Blocks do almost all arithmetic of a
// step. A complete block includes costs that the GEMM rate does not show.
#pragma once

#include "deck/config.hpp"

namespace kzero::plan {

/// Returns operations per second, forward and backward, as counted by Definition::flops_per_token.
/// Takes a fraction of a second. Requires Kokkos initialized with `threads` threads, but not MPI.
double block_rate(const deck::Config& config, Index threads);

}  // namespace kzero::plan
