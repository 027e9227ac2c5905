// Model states by formula if only the parameter count is known (paper section 3.1 and figure 1):
// per parameter, 2 bytes for 16-bit parameters, 2 for gradients and K = 12 for AdamW's fp32 master
// weights and two moments. Tensor parallelism divides all three. ZeRO stage 1 partitions the 12
// over the data-parallel ranks, stage 2 also the gradients, stage 3 also the parameters. Only a
// deck's plan includes padding, activations and buffers.
#pragma once

#include "plan/footprint.hpp"

namespace kzero::plan {

/// The largest size that is planned. Larger byte counts would exceed 64 bits.
inline constexpr Index max_parameters = 100'000'000'000'000'000;

/// Returns the bytes of the three model states, each rounded up. `parameters` is in [1,
/// max_parameters].
Footprint nominal(Index parameters, const Launch& launch);

/// Returns the largest model whose states fit in `bytes` per rank (paper table 2), or 0 parameters
/// if none fits.
Footprint largest_nominal(Index bytes, const Launch& launch);

}  // namespace kzero::plan
