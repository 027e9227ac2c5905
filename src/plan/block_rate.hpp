// Measures how fast this machine trains a block like the deck's: GEMMs, attention and the kernels
// between them, in the deck's precision and with its GEMM back end. Blocks do almost all of a
// step's arithmetic. Measuring a complete block includes costs that the GEMM rate does not show.
#pragma once

#include "deck/config.hpp"

namespace kzero::plan {

/// Returns operations per second, forward and backward, counted as
/// model::Definition::flops_per_token does. Runs for a fraction of a second. Kokkos must be
/// initialized with `threads` threads. MPI is not needed.
double block_rate(const deck::Config& config, Index threads);

}  // namespace kzero::plan
