// Shapes and views. Views are unmanaged, row-major ranges of the arenas; nothing here owns memory.
// Legend of dimensions: B sequences, T tokens per sequence, N = B * T rows; D model width, d = D /
// H width of a head, F feed-forward width, f its local part; H heads, L layers; V vocabulary, v its
// local part; n local rows, C rows of a chunk of logits. Local means: of one tensor-parallel rank.
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

}  // namespace kzero::tensor
