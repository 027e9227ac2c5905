// Gated activations of feed-forward layers (Shazeer, arXiv 2002.05202): y = act(gate) * up. One
// GEMM computes gate and up. SwiGLU, as in Llama, has silu(g) = g * sigmoid(g); GeGLU, as in Gemma,
// has the tanh form of GELU (kernels/gelu.hpp).
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

/// The same as swiglu_forward, with GELU.
template <class T>
void geglu_forward(const Execution& exec, Matrix<const T> gate_up, Matrix<T> y);

/// The same as swiglu_backward, with GELU.
template <class T>
void geglu_backward(const Execution& exec, Matrix<const T> gate_up, Matrix<T> d);

}  // namespace kzero::kernels
