// Measures how fast this machine trains a block like the deck's: GEMMs, attention and all kernels
// between them, in the deck's precision and with its GEMM back end. Blocks are nearly all of a
// step's arithmetic, and measuring a complete one includes what the speed of its GEMMs does not
// show.
#pragma once

#include "deck/config.hpp"

namespace kzero::plan {

/// Operations (as model::Definition::flops_per_token counts them) a second, forward and backward;
/// takes a fraction of a second. Kokkos is up with `threads` threads; needs no MPI.
double block_rate(const deck::Config& config, Index threads);

}  // namespace kzero::plan
