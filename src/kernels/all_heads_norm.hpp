// RMSNorm over all heads of q together, and over all heads of k, as in OLMo 2 (arXiv 2501.00656,
// section 3.2). Every tensor rank has some of the heads, so a row's sums of squares go around
// between two kernels: forward sums squares and then norms, backward sums products and then
// computes gradients.
#pragma once

#include "kernels/row_sums.hpp"

namespace kzero::kernels {

/// Rows begin with a rank's columns of q and then those of k. The norms are over all ranks'
/// columns.
struct AllHeadsShape {
  Index q_width = 0, k_width = 0;  // of this rank
  Index q_total = 0, k_total = 0;
  float eps = 0;

  Index width() const { return q_width + k_width; }
};

/// The columns of squares and of dots, of q and of k.
inline constexpr Index norms_of_heads = 2;

/// Computes squares [N,2], the sums of the squares of this rank's q and k, from qkv [N, >= width].
template <class T>
void row_squares(const Execution& exec, const AllHeadsShape& shape, Matrix<const T> qkv,
                 Matrix<float> squares);

/// Computes the first columns of `normed` [N, >= width] from those of qkv, squares of all ranks
/// [N,2] and weights [width]. normed may be qkv.
template <class T>
void all_heads_norm_forward(const Execution& exec, const AllHeadsShape& shape,
                            Vector<const T> weights, Matrix<const T> qkv,
                            Matrix<const float> squares, Matrix<T> normed);

/// Computes dots [N,2], the sums of gradient * weight * x over this rank's q and k. d [N, >= width]
/// is the gradient of forward's result.
template <class T>
void row_dots(const Execution& exec, const AllHeadsShape& shape, Vector<const T> weights,
              Matrix<const T> qkv, Matrix<const T> d, Matrix<float> dots);

/// Turns d into the gradient of qkv, in place, given squares and dots of all ranks [N,2]. Computes
/// (=|+=) the gradient of the weights [width], unless it is empty. partial [row_groups, >= width]
/// is scratch.
template <class T>
void all_heads_norm_backward(const Execution& exec, const AllHeadsShape& shape,
                             Vector<const T> weights, Matrix<const T> qkv,
                             Matrix<const float> squares, Matrix<const float> dots, Matrix<T> d,
                             Vector<T> dweights, Accumulate accumulate, Matrix<float> partial);

/// Computes out [n] = the sum of parts [ranks * n] over the ranks, in rank order.
void sum_of_ranks(const Execution& exec, Vector<const float> parts, Vector<float> out);

}  // namespace kzero::kernels
