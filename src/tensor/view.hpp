// Shapes and views. Views are unmanaged, row-major ranges of the arenas; nothing here owns memory.
// Legend of dimensions: B sequences, T tokens a sequence, N = B * T rows, D model width, F
// feed-forward width, H heads, V vocabulary, L layers, C rows of a chunk of logits. A small letter
// is the part of a tensor rank: n rows of the residual stream, d width of its heads, f columns of
// the feed-forward layer, v rows of the vocabulary.
#pragma once

#include "base/float16.hpp"
#include "base/types.hpp"
#include "runtime/execution.hpp"

namespace kzero::tensor {

using runtime::Execution;
using runtime::HostMemory;
using runtime::Memory;
using runtime::on_host;

template <class T>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, Memory, Kokkos::MemoryUnmanaged>;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Memory, Kokkos::MemoryUnmanaged>;
template <class T>
using HostMatrix = Kokkos::View<T**, Kokkos::LayoutRight, HostMemory, Kokkos::MemoryUnmanaged>;

/// Work items [begin, end). Kokkos' default index has 32 bits on devices, and a large model's units
/// have more elements than that.
using Range = Kokkos::RangePolicy<Execution, Kokkos::IndexType<Index>>;

}  // namespace kzero::tensor
