// One transformer block, pre-LayerNorm: x + attention(ln_1(x)), then + feed-forward(ln_2(.)).
// It knows shapes, its flat parameters, what it keeps and its tensor group; nothing of stages or
// who owns memory. The group shares out heads and feed-forward columns (Megatron-LM, arXiv
// 1909.08053, section 3): one sum over it behind each half, forward and backward.
#pragma once

#include "deck/config.hpp"
#include "kernels/row_sums.hpp"
#include "model/context.hpp"

namespace kzero::model {

/// Of what backward reads, the results of products and of attention: 3D, D, F and H are this tensor
/// rank's parts, n the rows of the stream here. 9 N D elements on a rank alone with F = 4 D.
template <class T>
struct SavedActivations {
  Matrix<T> qkv, attention, middle, hidden;  // [N,3D] [N,D] [n, whole D] [N,F]
  Matrix<float> log_sum;                     // [B*H,T]

  SavedActivations(memory::Arenas& arenas, const GptShape& shape, Index batch);
};

/// The rest: what one pass over a block's input and products makes again. 6 N D elements on a rank
/// alone with F = 4 D.
template <class T>
struct RecomputableActivations {
  Matrix<T> ln1, ln2, activated;             // [n, whole D] twice, [N,F]
  Vector<float> mean1, rstd1, mean2, rstd2;  // [n]

  RecomputableActivations(memory::Arenas& arenas, const GptShape& shape, Index batch);
};

/// What forward leaves for backward, beside the block's input. Blocks whose values are computed
/// again share the memory of them.
template <class T>
struct BlockActivations : SavedActivations<T>, RecomputableActivations<T> {};

/// A block's parameters, or their gradients, as views into its flat unit; the order is gpt_table's.
template <class T>
struct BlockParams {
  Vector<T> ln1_weight, ln1_bias;
  Matrix<T> qkv_weight;  // [D,3d], d: the width of this rank's heads
  Vector<T> qkv_bias;
  Matrix<T> projection_weight;  // [d,D]
  Vector<T> projection_bias;
  Vector<T> ln2_weight, ln2_bias;
  Matrix<T> up_weight;  // [D,f], f: this rank's part of the feed-forward width
  Vector<T> up_bias;
  Matrix<T> down_weight;  // [f,D]
  Vector<T> down_bias;

  BlockParams(const GptShape& shape, T* unit);
};

/// x [n,D] to out [n,D], which may be x's memory, filling `saved`.
template <class T>
void block_forward(const Context<T>& c, const BlockParams<const T>& p, Matrix<const T> x,
                   const BlockActivations<T>& saved, Matrix<T> out);

/// Fills again what `mode` has not kept of `saved`, with the bits that forward gave it.
template <class T>
void block_recompute(const Context<T>& c, deck::RecomputeMode mode, const BlockParams<const T>& p,
                     Matrix<const T> x, const BlockActivations<T>& saved);

/// dx holds the gradient of the block's output on entry and that of its input on return; parameter
/// gradients are written or added as `update` says.
template <class T>
void block_backward(const Context<T>& c, const BlockParams<const T>& p, Matrix<const T> x,
                    const BlockActivations<T>& saved, kernels::Update update,
                    const BlockParams<T>& gradients, Matrix<T> dx);

}  // namespace kzero::model
