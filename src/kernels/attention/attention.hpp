// Causal multi-head attention: softmax(Q K^T / sqrt(d)) V per head, without ever storing the T x T
// matrix of all heads; backward recomputes the probabilities from the saved log-sum-exp (Dao et
// al., arXiv 2205.14135). Groups of query heads may share a head of keys and values (Ainslie et
// al., arXiv 2305.13245). attention_host.hpp and attention_device.hpp have one implementation each.
#pragma once

#include "kernels/attention/problem.hpp"
#include "kernels/row.hpp"

namespace kzero::kernels {

/// Heads side by side in rows [N,..]: head i of row r begins at data + r * stride + i * d.
template <class T>
struct HeadColumns {
  T* data = nullptr;
  Index stride = 0;
};

/// The heads of queries, keys and values, or of their gradients.
template <class T>
struct HeadOperands {
  HeadColumns<T> q, k, v;
};

/// The operands in one matrix [N,(H+2K)d], whose rows hold q, k, v.
template <class T>
HeadOperands<T> operands_in(const Matrix<T>& qkv, const AttentionShape& shape) {
  const Index stride = qkv.extent(1), kv_width = shape.kv_heads * shape.head_width;
  T* k = qkv.data() + shape.width();
  return {{qkv.data(), stride}, {k, stride}, {k + kv_width, stride}};
}

/// Bytes of scratch that forward and backward need with this many concurrent threads; forward needs
/// no more than backward.
template <class T>
Index attention_scratch_bytes(const AttentionShape& shape, Index threads);

/// Computes out [B*T,H*d] from the heads of `in`; log_sum [B*H,T] is kept for backward. Overwrites
/// out and log_sum.
template <class T>
void attention_forward(const Execution& exec, const AttentionShape& shape,
                       const HeadOperands<const T>& in, Matrix<T> out, Matrix<float> log_sum,
                       Vector<float> scratch);

/// Computes the gradients of `in` from dout [B*T,H*d] and from out and log_sum as forward left
/// them; those of k and v are sums over their query heads in ascending order. Overwrites the
/// gradients.
template <class T>
void attention_backward(const Execution& exec, const AttentionShape& shape,
                        const HeadOperands<const T>& in, Matrix<const T> out,
                        Matrix<const float> log_sum, Matrix<const T> dout,
                        const HeadOperands<T>& gradients, Vector<float> scratch);

}  // namespace kzero::kernels
