// Shapes and views. Views are unmanaged, row-major ranges of the arenas; nothing here owns memory.
// Dimensions: B sequences, T tokens per sequence, N = B * T rows, D model width, F feed-forward
// width, H heads, V vocabulary, L layers, C rows of a chunk of logits. A lower-case letter is the
// part of one tensor rank: n rows of the residual stream, d width of its heads, f columns of the
// feed-forward layer, v rows of the vocabulary.
#pragma once

#include "base/float16.hpp"
#include "base/types.hpp"
#include "runtime/execution.hpp"

namespace kzero::tensor {

using runtime::Execution;
using runtime::HostCores;
using runtime::HostMemory;
using runtime::Memory;
using runtime::on_host;

template <class T>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, Memory, Kokkos::MemoryUnmanaged>;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Memory, Kokkos::MemoryUnmanaged>;
template <class T>
using HostMatrix = Kokkos::View<T**, Kokkos::LayoutRight, HostMemory, Kokkos::MemoryUnmanaged>;

/// Work items [begin, end). Kokkos' default index has 32 bits on devices; a unit of a large model
/// has more elements than that can count.
using Range = Kokkos::RangePolicy<Execution, Kokkos::IndexType<Index>>;

}  // namespace kzero::tensor
