// Measures how fast a rank computes and moves memory while all ranks do the same.
#pragma once

#include "base/types.hpp"
#include "grid/group.hpp"

namespace kzero::tensor {
class Gemm;
}

namespace kzero::probe {

struct Speed {
  double operations = 0;    // of a large square product, per second
  double memory_bytes = 0;  // read and written by a = b + s c, per second
};

/// Measures both on every rank at once, in rounds that begin together. The best round of each
/// counts, so that a short disturbance does not look like a slow rank. `threads` are the threads of
/// a rank; arrays grow with them, because caches must not hold the arrays. Needs about two seconds.
/// Collective over `world`.
Speed measure_speed(const grid::Group& world, tensor::Gemm& gemm, Dtype precision, Index threads);

}  // namespace kzero::probe
