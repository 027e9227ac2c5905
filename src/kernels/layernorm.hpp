// LayerNorm over the last dimension (Ba et al., arXiv 1607.06450): y = (x - mean) * rstd * weight +
// bias, rstd = 1 / sqrt(variance + eps), statistics in fp32.
#pragma once

#include "kernels/row_sums.hpp"

namespace kzero::kernels {

/// Computes y [N,D] from x [N,D], weight and bias [D]; mean and rstd [N] are kept for backward.
/// Overwrites y, mean, rstd.
template <class T>
void layernorm_forward(const Execution& exec, Matrix<const T> x, Vector<const T> weight,
                       Vector<const T> bias, float eps, Matrix<T> y, Vector<float> mean,
                       Vector<float> rstd);

/// The inputs of a forward call that backward needs: x [N,D], weight [D] and the statistics [N] of
/// its rows.
template <class T>
struct LayerNormInput {
  Matrix<const T> x;
  Vector<const T> weight;
  Vector<const float> mean, rstd;
};

/// The destinations of backward's gradients, dx [N,D], dweight and dbias [D]; dx is written or
/// added to as `dx_update` says (a residual branch's gradient may already be there), the other two
/// as `update` says.
template <class T>
struct LayerNormGradients {
  Matrix<T> dx;
  Update dx_update;
  Vector<T> dweight, dbias;
  Update update;
};

/// dy [N,D]; partial [row_groups, 2D] is scratch. dx overlaps neither x nor dy.
template <class T>
void layernorm_backward(const Execution& exec, const LayerNormInput<T>& input, Matrix<const T> dy,
                        const LayerNormGradients<T>& gradients, Matrix<float> partial);

}  // namespace kzero::kernels
