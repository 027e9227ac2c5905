// How fast a rank computes and moves memory while all ranks do the same.
#pragma once

#include "grid/group.hpp"
#include "tensor/gemm.hpp"

namespace kzero::probe {

struct Speed {
  double operations = 0;    // of a large square product, per second
  double memory_bytes = 0;  // read and written by a = b + s c, per second
};

/// Measures both on every rank at the same time, in rounds that begin together. The best round of
/// each counts, so that a brief disturbance does not make a rank look slow. `threads` are this
/// rank's; more threads get larger arrays, which caches must not hold. Takes about two seconds.
/// Collective over `world`.
Speed measure_speed(const grid::Group& world, const tensor::Execution& exec, tensor::Gemm& gemm,
                    Dtype precision, Index threads);

}  // namespace kzero::probe
