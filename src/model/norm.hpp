// The norm of a block or head: LayerNorm or RMSNorm, as the shape specifies. Backward follows a
// GEMM whose input gradient is a sum over the tensor group. With sequence parallelism, parameter
// gradients are also sums over the group.
#pragma once

#include "kernels/norm.hpp"
#include "model/context.hpp"

namespace kzero::model {

/// A norm's parameters [D] or their gradients, contiguous in memory. RMSNorm has no bias.
template <class T>
struct Norm {
  Vector<T> weight, bias;
};

/// Returns the parameters of the norm that begins at `first`.
template <class T>
Norm<T> norm_at(const TransformerShape& shape, T* first) {
  const auto d = static_cast<std::size_t>(shape.hidden);
  return {Vector<T>(first, d),
          Vector<T>(first + d, static_cast<std::size_t>(shape.norm_elements()) - d)};
}

/// Row statistics [n] that backward needs in addition to forward's input. RMSNorm has no mean.
struct NormStatistics {
  Vector<float> mean, rstd;

  NormStatistics() = default;
  NormStatistics(const Vector<float>& means, const Vector<float>& rstds)
      : mean(means), rstd(rstds) {}
  NormStatistics(memory::Arenas& arenas, const TransformerShape& shape, Index rows);
};

/// Computes y [n,D] and the statistics from x [n,D].
template <class T>
void norm_forward(const Context<T>& c, const Norm<const T>& p, Matrix<const T> x, Matrix<T> y,
                  const NormStatistics& statistics);

/// The results of norm_backward: dx [n,D] and the parameter gradients, empty if the parameters are
/// frozen. `dx_accumulate` and `accumulate` select whether they are overwritten or added to.
/// dx_before and dx_after [D] are kernels::LayerNormGradients', empty unless sums_stream_biases().
template <class T>
struct NormGradients {
  Matrix<T> dx;
  tensor::Accumulate dx_accumulate;
  Norm<T> parameters;
  tensor::Accumulate accumulate;
  Vector<T> dx_before = {}, dx_after = {};
};

/// On entry c.hidden_grad [N,D] holds this rank's partial sum of the gradient of the norm's output.
/// x and dx [n,D] have the local rows of the residual stream. Collective over the tensor group.
template <class T>
void norm_backward(const Context<T>& c, const Norm<const T>& p, Matrix<const T> x,
                   const NormStatistics& statistics, const NormGradients<T>& gradients);

}  // namespace kzero::model
