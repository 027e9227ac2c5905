// Products of small fp32 matrices that lie in a core's caches, in the registers of the calling
// thread: for tiled kernels on hosts. The library's call costs more than such a product, and counts
// its operands as if they came from memory.
#pragma once

#include "base/types.hpp"
#include "kernels/host_vector.hpp"

namespace kzero::kernels {

/// A matrix of which element (i, k) is at data[i * row + k * column].
struct Strided {
  const float* data = nullptr;
  Index row = 0, column = 1;
};

/// C[m,n] = A[m,k] B[k,n], or C += A B. B and C are row-major; n is a multiple of host_lanes.
struct HostProduct {
  Index m = 0, n = 0, k = 0;
  Strided a;
  const float* b = nullptr;
  Index b_stride = 0;
  float* c = nullptr;
  Index c_stride = 0;
  bool adds = false;  // to C
};

/// Computes the product on the calling thread. An element's sum runs over k in order, whatever m
/// and n are.
void multiply(const HostProduct& product);

}  // namespace kzero::kernels
