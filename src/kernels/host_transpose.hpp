// Transposes of small fp32 matrices in a core's caches, for tiled kernels on hosts.
#pragma once

#include "base/types.hpp"
#include "kernels/host_vector.hpp"

namespace kzero::kernels {

/// Sets to[j * to_stride + i] = from[i * from_stride + j] for i in [0, rows), j in [0, columns),
/// both multiples of host_lanes. The arrays do not overlap.
void transpose(Index rows, Index columns, const float* from, Index from_stride, float* to,
               Index to_stride);

}  // namespace kzero::kernels
