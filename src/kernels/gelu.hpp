// GELU in its tanh form (Hendrycks and Gimpel, arXiv 1606.08415), as in GPT-2:
// gelu(h) = h/2 (1 + tanh(sqrt(2/pi) (h + 0.044715 h^3))).
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

/// Computes g = gelu(h); h, g [N,F]. Overwrites g.
template <class T>
void gelu_forward(const Execution& exec, Matrix<const T> h, Matrix<T> g);

/// Turns the gradient of g into that of h, in place in dg [N,F].
template <class T>
void gelu_backward(const Execution& exec, Matrix<const T> h, Matrix<T> dg);

}  // namespace kzero::kernels
