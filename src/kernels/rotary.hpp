// Rotary position embeddings of q and k (Su et al., arXiv 2104.09864) by halves: elements j and j +
// h/2 of a head of width h are rotated by the angle of their row's position. The same pass first
// applies the RMSNorm of each head, as in Qwen3 (arXiv 2505.09388).
#pragma once

#include "kernels/documents.hpp"
#include "kernels/row_sums.hpp"

namespace kzero::kernels {

/// Rows of qkv hold `heads` heads of q, then `kv_heads` heads of k, then `kv_heads` heads of v.
/// Rows have their positions in their documents. `documents` are those of all rows of the
/// sequences.
struct RotaryShape {
  Index sequence = 0;    // T
  Index heads = 0;       // H
  Index kv_heads = 0;    // K
  Index head_width = 0;  // h, even
  Index first_row = 0;   // of qkv, among those of the sequences

  Index rotated_width() const { return (heads + kv_heads) * head_width; }
};

/// The weights [h] of the norms of q's and k's heads, shared by all heads. If both are empty, the
/// heads are not normed. A normalised value is multiplied by offset + weight (NormScale).
template <class T>
struct HeadNorms {
  Vector<const T> q_weight, k_weight;
  float eps = 0;
  float offset = 0;
};

/// The destinations of the weights' gradients [h], or empty if the weights are frozen. `accumulate`
/// selects whether they are written or added to.
template <class T>
struct HeadNormGradients {
  Vector<T> dq_weight, dk_weight;
  Accumulate accumulate = Accumulate::no;
};

/// Overwrites the first (H+K)h columns of `rotated` [N, >= (H+K)h] with q and k of qkv [N, >=
/// (H+K)h], normed and then rotated: (a, b) becomes (a cos - b sin, b cos + a sin). `table` [T,h]
/// holds the cosines of a position's h/2 angles, then their sines, both times any attention factor.
/// Rounds once at the end. `rotated` may be qkv itself if there is no norm.
template <class T>
void rotary_forward(const Execution& exec, const RotaryShape& shape, const Documents& documents,
                    Matrix<const float> table, const HeadNorms<T>& norms, Matrix<const T> qkv,
                    Matrix<T> rotated);

/// Does the same with positions[i], a row of `table`, as the position of row i. Does not use
/// shape.sequence.
template <class T>
void rotary_at(const Execution& exec, const RotaryShape& shape, Matrix<const float> table,
               Vector<const Index> positions, const HeadNorms<T>& norms, Matrix<const T> qkv,
               Matrix<T> rotated);

/// Turns the gradient of forward's output into that of q and k, in place in the first (H+K)h
/// columns of dqkv [N, >= (H+K)h]. With norms, qkv is forward's input and partial [row_groups, >=
/// 2h] is scratch. Without norms, qkv, gradients and partial are not used and may be empty.
template <class T>
void rotary_backward(const Execution& exec, const RotaryShape& shape, const Documents& documents,
                     Matrix<const float> table, const HeadNorms<T>& norms, Matrix<const T> qkv,
                     Matrix<T> dqkv, const HeadNormGradients<T>& gradients, Matrix<float> partial);

}  // namespace kzero::kernels
