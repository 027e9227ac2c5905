// How fast a rank computes and moves memory while all ranks do the same.
#pragma once

#include "grid/group.hpp"
#include "tensor/gemm.hpp"

namespace kzero::probe {

struct Speed {
  double operations = 0;    // of a large square product, per second
  double memory_bytes = 0;  // read and written by a = b + s c, per second
};

/// Measures both on every rank at once, in rounds that begin together; of each the best round
/// counts, so that a disturbance of a moment is not taken for a slow rank. `threads` are those of a
/// rank: more threads get larger arrays, which caches must not hold. Takes about two seconds.
/// Collective over `world`.
Speed measure_speed(const grid::Group& world, const tensor::Execution& exec, tensor::Gemm& gemm,
                    Dtype precision, Index threads);

}  // namespace kzero::probe
