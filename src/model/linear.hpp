// The linear layer y = x W + b with W [in,out], and its gradients, as GEMMs.
#pragma once

#include "kernels/row_sums.hpp"
#include "model/context.hpp"

namespace kzero::model {

inline tensor::Accumulate accumulate_of(kernels::Update update) {
  return update == kernels::Update::add ? tensor::Accumulate::yes : tensor::Accumulate::no;
}

/// Computes y [N,out] = x [N,in] W + b (+ addend [N,out] if given).
template <class T>
void linear_forward(const Context<T>& c, Matrix<const T> x, Matrix<const T> weight,
                    Vector<const T> bias, Matrix<T> y, const T* addend = nullptr);

/// Computes y = x W + b + addend with `in` split over the tensor group (Megatron-LM's row-parallel
/// layer): y and addend have the local rows of the residual stream [n,out]. Collective over the
/// tensor group.
template <class T>
void row_parallel_forward(const Context<T>& c, Matrix<const T> x, Matrix<const T> weight,
                          Vector<const T> bias, const T* addend, Matrix<T> y);

/// Computes dx [N,in] = dy [N,out] W^T.
template <class T>
void linear_backward_input(const Context<T>& c, Matrix<const T> dy, Matrix<const T> weight,
                           Matrix<T> dx);

/// Computes dhidden [N,in] = dy W^T * gelu'(hidden), for x = gelu(hidden [N,in]). dy W^T is rounded
/// before the last multiplication unless the back end fuses it.
template <class T>
void linear_backward_gelu(const Context<T>& c, Matrix<const T> dy, Matrix<const T> weight,
                          Matrix<const T> hidden, Matrix<T> dhidden);

/// Computes dweight (=|+=) x^T dy and dbias (=|+=) the sum of dy's rows.
template <class T>
void linear_backward_weight(const Context<T>& c, Matrix<const T> x, Matrix<const T> dy,
                            kernels::Update update, Matrix<T> dweight, Vector<T> dbias);

}  // namespace kzero::model
