// The rows of a pass of generation: tokens of any sequences and positions, whose attention reads
// the cached keys and values of earlier positions.
#pragma once

#include "kernels/attention/cached_attention.hpp"
#include "model/tensor_group.hpp"

namespace kzero::model {

/// How a pass computes its products: with the library, whose rounding depends on the number of
/// rows, or with the kernel for few rows, in which a row's bits do not depend on the others.
enum class Products { library, few_rows };

template <class T>
struct CachedRows {
  const Execution& exec;
  tensor::Gemm* gemm = nullptr;
  const TensorGroup<T>& group;
  Products products = Products::library;
  kernels::RowPlaces places{};   // [R]
  Matrix<const float> rotary{};  // rotary_tables of the cache's positions, or empty
  T* share = nullptr;            // [R,D] with a tensor group, else null

  Index count() const { return static_cast<Index>(places.position.size()); }
  /// The first R rows of a matrix that has more.
  template <class U>
  Matrix<U> of(const Matrix<U>& x) const {
    return {x.data(), places.position.size(), x.extent(1)};
  }
  /// The same of a vector; none of an empty one.
  template <class U>
  Vector<U> of(const Vector<U>& x) const {
    return {x.data(), x.size() > 0 ? places.position.size() : 0};
  }
};

}  // namespace kzero::model
