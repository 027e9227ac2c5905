// Sums over rows in a fixed number of groups, so that results do not depend on the number of
// threads. Used for the gradients of biases and of LayerNorm's parameters.
#pragma once

#include "kernels/row.hpp"
#include "tensor/accumulate.hpp"

namespace kzero::kernels {

using tensor::Accumulate;

/// Number of groups into which sums over rows divide a batch. A team sums each group, and a device
/// needs several teams per multiprocessor.
inline constexpr Index row_groups = tensor::on_host ? 32 : 512;

/// Computes out[j] (=|+=) sum over g of partial(g, first + j) for all j of out. partial
/// [row_groups, any].
template <class T>
void sum_groups(const Execution& exec, Matrix<const float> partial, Index first,
                Accumulate accumulate, Vector<T> out);

/// Computes out[j] (=|+=) sum over rows of x(i, j): the gradient of a bias. x [N,D], out [D],
/// partial [row_groups, D]. Out is T or float.
template <class T, class Out>
void sum_rows(const Execution& exec, Matrix<const T> x, Accumulate accumulate, Vector<Out> out,
              Matrix<float> partial);

}  // namespace kzero::kernels
