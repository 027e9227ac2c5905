// SwiGLU (Shazeer, arXiv 2002.05202), the activation of Llama's feed-forward layer: silu(gate) *
// up, silu(g) = g * sigmoid(g). One GEMM computes gate and up.
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

/// Computes y [N,F] from gate_up [N,2F], whose rows hold F gate values and then F up values.
/// Overwrites y.
template <class T>
void swiglu_forward(const Execution& exec, Matrix<const T> gate_up, Matrix<T> y);

/// Turns the gradient of y into that of gate_up, in place. On entry d [N,2F] holds the gradient of
/// y in its first F columns. The other columns are not read. On return d has the layout of gate_up
/// [N,2F].
template <class T>
void swiglu_backward(const Execution& exec, Matrix<const T> gate_up, Matrix<T> d);

}  // namespace kzero::kernels
