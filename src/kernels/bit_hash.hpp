// Hashes of the bits of arrays. Ranks compare hashes instead of sending their results.
#pragma once

#include "tensor/view.hpp"

namespace kzero::kernels {

using tensor::Execution;
using tensor::Vector;

/// Sets *hash, in device memory, to a hash of the bits of x. The hash is the sum modulo 2^64, over
/// groups of 8 bytes, of a mix of position and value. It does not depend on the threads or their
/// order. A change of one element always changes it. All NaNs count as the same value, because the
/// compiler chooses which operand's NaN an addition returns.
template <class T>
void hash_bits(const Execution& exec, Vector<const T> x, std::uint64_t* hash);

}  // namespace kzero::kernels
