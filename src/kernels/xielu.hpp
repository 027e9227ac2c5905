// xIELU (Huang and Schlag, arXiv 2411.13010), the activation of Apertus:
// y = p u^2 + u / 2 for u > 0, and n (e^u - 1 - u) + u / 2 for other u, with two trained scales
// p = softplus(a) and n = 1/2 + softplus(b). The function and its slope are continuous. In
// transformers, where u in e^u is at most -1e-6, the slope jumps by n between there and 0.
#pragma once

#include "kernels/row_sums.hpp"

namespace kzero::kernels {

/// Computes y [N,F] from u [N,F] and the parameters [2], a and b. Overwrites y.
template <class T>
void xielu_forward(const Execution& exec, Matrix<const T> u, Vector<const T> parameters,
                   Matrix<T> y);

/// Where backward adds or writes the gradients of the two parameters.
struct XieluSums {
  Vector<float> sums;  // [2]
  Accumulate accumulate = Accumulate::no;
};

/// Turns the gradient of y into that of u, in place in d [N,F]. Computes those of the parameters
/// unless gradients.sums is empty. partial [row_groups, >= 2] is scratch.
template <class T>
void xielu_backward(const Execution& exec, Matrix<const T> u, Vector<const T> parameters,
                    Matrix<T> d, const XieluSums& gradients, Matrix<float> partial);

}  // namespace kzero::kernels
