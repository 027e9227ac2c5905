// The linear layer y = x W + b and its gradients as GEMMs. W is stored [in,out] or transposed,
// [out,in], as in the family's files.
#pragma once

#include "kernels/row_sums.hpp"
#include "model/context.hpp"

namespace kzero::model {

/// A layer's parameters or their gradients: W in the shape's layout, and b [out] or empty.
template <class T>
struct Linear {
  Matrix<T> weight;
  Vector<T> bias;
};

/// The GEMM of linear_forward.
template <class T>
tensor::GemmProblem forward_product(const TransformerShape& shape, Matrix<const T> x,
                                    const Linear<const T>& layer, Matrix<T> y,
                                    const T* addend = nullptr);

/// Computes y [N,out] = x [N,in] W + b (+ addend [N,out] if given).
template <class T>
void linear_forward(const Context<T>& c, Matrix<const T> x, const Linear<const T>& layer,
                    Matrix<T> y, const T* addend = nullptr);

/// Computes y = x W + b + addend with `in` split over the tensor group (Megatron-LM's row-parallel
/// layer). y and addend are the local rows of the residual stream [n,out]. Collective over the
/// tensor group.
template <class T>
void row_parallel_forward(const Context<T>& c, Matrix<const T> x, const Linear<const T>& layer,
                          const T* addend, Matrix<T> y);

/// Computes dx [N,in] = dy [N,out] W^T, in the first columns of dx.
template <class T>
void linear_backward_input(const Context<T>& c, Matrix<const T> dy, const Linear<const T>& layer,
                           Matrix<T> dx);

/// Computes dhidden [N,in] = dy W^T * gelu'(hidden), for x = gelu(hidden [N,in]). If hidden has a
/// bias [in], also computes dbias (=|+=) the sum of dhidden's rows. dy W^T is rounded before the
/// last multiplication unless the back end fuses the two.
template <class T>
void linear_backward_gelu(const Context<T>& c, Matrix<const T> dy, const Linear<const T>& layer,
                          Matrix<const T> hidden, Matrix<T> dhidden, tensor::Accumulate accumulate,
                          Vector<T> dbias);

/// Computes dW (=|+=) x^T dy and db (=|+=) the sum of dy's rows, if there is a bias. Frozen layers
/// have empty gradients; nothing is computed for them.
template <class T>
void linear_backward_weight(const Context<T>& c, Matrix<const T> x, Matrix<const T> dy,
                            tensor::Accumulate accumulate, const Linear<T>& gradients);

/// Adds the product of linear_backward_weight to `sum`, in fp32, or overwrites it. `weight` has the
/// shape of the gradient.
template <class T>
void linear_backward_weight_sum(const Context<T>& c, Matrix<const T> x, Matrix<const T> dy,
                                tensor::Accumulate accumulate, const Matrix<T>& weight, float* sum);

/// Computes out (=|+=) a sum in fp32, rounded once.
template <class T>
void store_sum(const Context<T>& c, const float* sum, tensor::Accumulate accumulate,
               const Vector<T>& out);

}  // namespace kzero::model
