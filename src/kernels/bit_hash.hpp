// Hashes of the bits of arrays: ranks compare what they computed without sending it.
#pragma once

#include "tensor/view.hpp"

namespace kzero::kernels {

using tensor::Execution;
using tensor::Vector;

/// Sets *hash, in device memory, to a hash of the bits of x: the sum modulo 2^64, over groups of 8
/// bytes, of a mix of place and value. Neither threads nor their order show in it, and a change of
/// one element always changes it. All NaNs count as the same value: which of its operands' NaNs an
/// addition returns is up to the compiler.
template <class T>
void hash_bits(const Execution& exec, Vector<const T> x, std::uint64_t* hash);

}  // namespace kzero::kernels
