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

/// Writes the gradient of x to dx [N,D], or adds it where dx has the residual branch's gradient
/// already, as `dx_mode` says; writes or adds to dweight and dbias [D] as `mode` says. partial
/// [row_groups, 2D] is scratch. dx overlaps neither x nor dy.
template <class T>
void layernorm_backward(const Execution& exec, Matrix<const T> x, Vector<const T> weight,
                        Vector<const float> mean, Vector<const float> rstd, Matrix<const T> dy,
                        Update dx_mode, Matrix<T> dx, Update mode, Vector<T> dweight,
                        Vector<T> dbias, Matrix<float> partial);

}  // namespace kzero::kernels
