// Products of small matrices that lie in a core's caches, in the registers of the calling thread:
// for tiled kernels on hosts. The library's call costs more than such a product, and counts its
// operands as if they came from memory.
#pragma once

#include "base/types.hpp"
#include "kernels/host/pairs.hpp"

namespace kzero::kernels {

/// A matrix of which element (i, k) is at data[i * row + k * column].
template <class E>
struct Strided {
  const E* data = nullptr;
  Index row = 0, column = 1;
};

/// C[m,n] = A[m,k] B[k,n], or C += A B, with elements of one term (float) or two (Bf16Pair) of a
/// sum along k. C is in fp32; B and C are row-major; n is a multiple of host_lanes.
template <class E>
struct HostProduct {
  Index m = 0, n = 0, k = 0;
  Strided<E> a;
  const E* b = nullptr;
  Index b_stride = 0;
  float* c = nullptr;
  Index c_stride = 0;
  bool adds = false;  // to C
};

/// Computes the product on the calling thread. An element's sum runs over k in order, whatever m
/// and n are.
template <class E>
void multiply(const HostProduct<E>& product);

/// A way to compute products, in vectors unless it says otherwise. A thread calls begin() before
/// its first product and end() after its last, and no library between them: both may have tile
/// registers in use.
template <class E>
struct ProductBackend {
  void (*begin)() = [] {};
  void (*multiply)(const HostProduct<E>&) = &kernels::multiply<E>;
  void (*end)() = [] {};
};

/// Returns the way of this process: for pairs the tiles of Intel AMX where amx_available()
/// (base/processor.hpp), else vectors. The bits of both differ.
template <class E>
ProductBackend<E> product_backend();
template <>
inline ProductBackend<float> product_backend() {
  return {};
}
template <>
ProductBackend<Bf16Pair> product_backend();

}  // namespace kzero::kernels
