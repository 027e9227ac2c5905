// Matrices with padded rows, so that each row begins where a device can load 16 bytes at a time.
#pragma once

#include "tensor/view.hpp"

namespace kzero::tensor {

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
