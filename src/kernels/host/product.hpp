// Products of small matrices in a core's caches, computed in the calling thread's registers, for
// tiled kernels on hosts. A library call costs more than such a product and counts its operands as
// if they came from memory.
#pragma once

#include "base/types.hpp"
#include "kernels/host/pairs.hpp"

namespace kzero::kernels {

/// A matrix whose element (i, k) is at data[i * row + k * column].
template <class E>
struct Strided {
  const E* data = nullptr;
  Index row = 0, column = 1;
};

/// C[m,n] = A[m,k] B[k,n], or C += A B. An element holds one term (float) or two (Bf16Pair) of a
/// sum along k. C is in fp32. B and C are row-major. n is a multiple of host_lanes.
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

/// Computes the product on the calling thread. An element's sum runs over k in order for any m and
/// n.
template <class E>
void multiply(const HostProduct<E>& product);

/// Computes the product of pairs in fp32, as multiply() does where the processor has no instruction
/// for them. The bits are other than that instruction's.
void multiply_widened(const HostProduct<Bf16Pair>& product);

/// A way to compute products, by default in vectors. A thread calls begin() before its first
/// product and end() after its last. It must not call a library in between, because both may use
/// tile registers.
template <class E>
struct ProductBackend {
  void (*begin)() = [] {};
  void (*multiply)(const HostProduct<E>&) = &kernels::multiply<E>;
  void (*end)() = [] {};
};

/// Returns the way for pairs in vectors: in fp32 if pairs_are_slow() (base/processor.hpp).
ProductBackend<Bf16Pair> vector_backend();

/// Returns this process's way: for pairs the tiles of Intel AMX if amx_available()
/// (base/processor.hpp), else vectors. The ways give different bits.
template <class E>
ProductBackend<E> product_backend();
template <>
inline ProductBackend<float> product_backend() {
  return {};
}
template <>
ProductBackend<Bf16Pair> product_backend();

}  // namespace kzero::kernels
