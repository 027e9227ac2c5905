// Norms over the last dimension, with statistics in fp32 and one rounding at the end.
// LayerNorm (Ba et al., arXiv 1607.06450): y = (x - mean) * rstd * weight + bias,
// rstd = 1 / sqrt(variance + eps).
// RMSNorm (Zhang and Sennrich, arXiv 1910.07467): y = x * rstd * weight,
// rstd = 1 / sqrt(mean(x^2) + eps). Newer families scale the result or add it to a residual stream.
#pragma once

#include "kernels/row_sums.hpp"

namespace kzero::kernels {

/// Computes y [N,D] from x [N,D], weight and bias [D]. Keeps mean and rstd [N] for backward.
/// Overwrites y, mean, rstd.
template <class T>
void layernorm_forward(const Execution& exec, Matrix<const T> x, Vector<const T> weight,
                       Vector<const T> bias, float eps, Matrix<T> y, Vector<float> mean,
                       Vector<float> rstd);

/// The inputs of a forward call that backward needs: x [N,D], weight [D] and the rows' statistics
/// [N].
template <class T>
struct LayerNormInput {
  Matrix<const T> x;
  Vector<const T> weight;
  Vector<const float> mean, rstd;
};

/// The destinations of backward's gradients: dx [N,D], dweight and dbias [D], which are empty if
/// the parameters are frozen. `dx_accumulate` selects whether dx is written or added to, because it
/// may hold a residual branch's gradient. `accumulate` does so for all others. dx_before and
/// dx_after [D] receive the sums of dx's rows as they are before and after the call. These are the
/// gradients of biases that were added to the residual stream. Both are empty if they are not
/// needed; otherwise dweight and dbias are not empty.
template <class T>
struct LayerNormGradients {
  Matrix<T> dx;
  Accumulate dx_accumulate;
  Vector<T> dweight, dbias;
  Accumulate accumulate;
  Vector<T> dx_before = {}, dx_after = {};
};

/// The columns of layernorm_backward's scratch for rows of D columns.
constexpr Index layernorm_sums(Index width, bool sums_dx) {
  return sums_dx && !tensor::on_host ? 4 * width : 2 * width;
}

/// dy [N,D]; partial [row_groups, >= layernorm_sums(D)] is scratch. dx must not overlap x or dy.
template <class T>
void layernorm_backward(const Execution& exec, const LayerNormInput<T>& input, Matrix<const T> dy,
                        const LayerNormGradients<T>& gradients, Matrix<float> partial);

/// By what RMSNorm multiplies a normalised value: (offset + weight) * factor. Gemma's weights have
/// an offset of 1.
struct NormScale {
  float offset = 0, factor = 1;

  /// V is float or a vector of floats.
  template <class V>
  KOKKOS_INLINE_FUNCTION V of(V weight) const {
    return (weight + offset) * factor;
  }
};

/// Computes y [N,D] = addend + the scaled norm of x [N,D] with weight [D], rounded once. Keeps rstd
/// [N] for backward. Overwrites y, rstd. The addend [N,D] may be empty, and it may be y.
template <class T>
void rmsnorm_forward(const Execution& exec, Matrix<const T> x, Vector<const T> weight, float eps,
                     Matrix<T> y, Vector<float> rstd, const NormScale& scale = {},
                     Matrix<const T> addend = {});

/// RMSNorm's input: LayerNormInput without a mean, and the scale.
template <class T>
struct RmsNormInput {
  Matrix<const T> x;
  Vector<const T> weight;
  Vector<const float> rstd;
  NormScale scale = {};
};

/// RMSNorm's gradients: LayerNormGradients without a bias.
template <class T>
struct RmsNormGradients {
  Matrix<T> dx;
  Accumulate dx_accumulate;
  Vector<T> dweight;
  Accumulate accumulate;
};

/// dy [N,D] is the gradient of the scaled norm, and therefore also of the addend. partial
/// [row_groups, >= D] is scratch. dx must not overlap x or dy.
template <class T>
void rmsnorm_backward(const Execution& exec, const RmsNormInput<T>& input, Matrix<const T> dy,
                      const RmsNormGradients<T>& gradients, Matrix<float> partial);

}  // namespace kzero::kernels
