// Sums over rows in a fixed number of groups, so that they do not depend on the number of threads:
// gradients of biases and of LayerNorm's parameters.
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

/// Says whether a gradient replaces the previous value or is added to it (later micro-batches,
/// second uses).
enum class Update { overwrite, add };

/// Groups into which the rows of a batch are divided for sums over rows: each is the work of a
/// team, and a device needs several per multiprocessor.
inline constexpr Index row_groups = tensor::on_host ? 32 : 512;

/// Computes out[j] (=|+=) sum over g of partial(g, first + j), for all j of out. partial
/// [row_groups, any].
template <class T>
void sum_groups(const Execution& exec, Matrix<const float> partial, Index first, Update mode,
                Vector<T> out);

/// Computes out[j] (=|+=) sum over rows of x(i, j): the gradient of a bias. x [N,D], out [D],
/// partial [row_groups, D].
template <class T>
void sum_rows(const Execution& exec, Matrix<const T> x, Update mode, Vector<T> out,
              Matrix<float> partial);

}  // namespace kzero::kernels
