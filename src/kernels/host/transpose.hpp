// Transposes of small matrices in a core's caches, for tiled kernels on hosts.
#pragma once

#include "base/types.hpp"
#include "kernels/host/pairs.hpp"

namespace kzero::kernels {

/// Sets to[j * to_stride + i] = from[i * from_stride + j] for i in [0, rows), j in [0, columns),
/// both multiples of host_lanes. The arrays must not overlap.
void transpose(Index rows, Index columns, const float* from, Index from_stride, float* to,
               Index to_stride);

/// Transposes pairs as 32-bit lanes.
inline void transpose(Index rows, Index columns, const Bf16Pair* from, Index from_stride,
                      Bf16Pair* to, Index to_stride) {
  transpose(rows, columns, reinterpret_cast<const float*>(from), from_stride,
            reinterpret_cast<float*>(to), to_stride);
}

}  // namespace kzero::kernels
