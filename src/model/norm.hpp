// The norm of a block or head, LayerNorm or RMSNorm as the shape says. Backward is behind a GEMM
// whose input gradient is a sum over the tensor group, and in sequence parallelism the parameters'
// gradients are sums over the group too.
#pragma once

#include "kernels/norm.hpp"
#include "model/context.hpp"

namespace kzero::model {

/// A norm's parameters [D], or their gradients, one behind the other in memory; RMSNorm has no
/// bias.
template <class T>
struct Norm {
  Vector<T> weight, bias;
};

/// The parameters of a norm that begin at `first`.
template <class T>
Norm<T> norm_at(const TransformerShape& shape, T* first) {
  const auto d = static_cast<std::size_t>(shape.hidden);
  return {Vector<T>(first, d),
          Vector<T>(first + d, static_cast<std::size_t>(shape.norm_elements()) - d)};
}

/// Statistics of rows [n] that backward needs beside forward's input; RMSNorm has no mean.
struct NormStatistics {
  Vector<float> mean, rstd;

  NormStatistics() = default;
  NormStatistics(memory::Arenas& arenas, const TransformerShape& shape, Index rows);
};

/// Computes y [n,D] from x [n,D], and the statistics.
template <class T>
void norm_forward(const Context<T>& c, const Norm<const T>& p, Matrix<const T> x, Matrix<T> y,
                  const NormStatistics& statistics);

/// The destinations of norm_backward: dx [n,D], written or added to as `dx_update` says, and the
/// parameters' gradients as `update` says.
template <class T>
struct NormGradients {
  Matrix<T> dx;
  kernels::Update dx_update;
  Norm<T> parameters;
  kernels::Update update;
};

/// c.hidden_grad [N,D] holds this rank's partial sum of the gradient of the norm's output. x and dx
/// [n,D] have the stream's rows. Collective over the tensor group.
template <class T>
void norm_backward(const Context<T>& c, const Norm<const T>& p, Matrix<const T> x,
                   const NormStatistics& statistics, const NormGradients<T>& gradients);

}  // namespace kzero::model
