// Causal multi-head attention: softmax(Q K^T / sqrt(d)) V per head, d = D / H, without ever storing
// the T x T matrix of all heads; backward recomputes the probabilities from the saved log-sum-exp
// (Dao et al., arXiv 2205.14135). attention_host.hpp and attention_device.hpp have one
// implementation each.
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

struct AttentionShape {
  Index batch = 0;     // B
  Index sequence = 0;  // T
  Index heads = 0;     // H
  Index width = 0;     // D, a multiple of H

  Index head_width() const { return width / heads; }
};

/// Bytes of scratch that forward and backward need with this many concurrent threads; forward needs
/// no more than backward.
Index attention_scratch_bytes(const AttentionShape& shape, Index threads);

/// Computes out [B*T,D] from qkv [B*T,3D], whose rows hold q, k, v, each by heads; log_sum [B*H,T]
/// is kept for backward. Overwrites out and log_sum.
template <class T>
void attention_forward(const Execution& exec, const AttentionShape& shape, Matrix<const T> qkv,
                       Matrix<T> out, Matrix<float> log_sum, Vector<float> scratch);

/// Computes dqkv [B*T,3D] from dout [B*T,D] and from out and log_sum as forward left them.
/// Overwrites dqkv.
template <class T>
void attention_backward(const Execution& exec, const AttentionShape& shape, Matrix<const T> qkv,
                        Matrix<const T> out, Matrix<const float> log_sum, Matrix<const T> dout,
                        Matrix<T> dqkv, Vector<float> scratch);

}  // namespace kzero::kernels
