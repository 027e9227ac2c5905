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

/// Whether a result is added to the previous value (yes) or replaces it (no). Gradients are
/// accumulated over micro-batches and over several uses of a parameter.
enum class Accumulate { no, yes };

/// A row-major matrix with stride(0) elements from row to row. A Matrix converts to one.
template <class T>
using StridedMatrix = Kokkos::View<T**, Kokkos::LayoutStride, Memory, Kokkos::MemoryUnmanaged>;

/// The matrix [rows,columns] at `data`.
template <class T>
StridedMatrix<T> strided_matrix(T* data, Index rows, Index columns, Index stride) {
  const auto size = [](Index n) { return static_cast<std::size_t>(n); };
  return StridedMatrix<T>(
      data, Kokkos::LayoutStride(size(rows), size(stride), size(columns), std::size_t{1}));
}

}  // namespace kzero::tensor
