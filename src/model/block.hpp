// One transformer block, pre-LayerNorm: x + attention(ln_1(x)), then + feed-forward(ln_2(.)). It
// knows shapes, its flat parameters, its activations and its tensor group; nothing of stages or
// memory ownership. The group splits heads and feed-forward columns (Megatron-LM, arXiv 1909.08053,
// section 3): one all-reduce behind each half, forward and backward.
#pragma once

#include "deck/config.hpp"
#include "kernels/row_sums.hpp"
#include "model/context.hpp"

namespace kzero::model {

/// Activations that are always saved, the results of GEMMs and of attention: 3D, D, F and H are
/// this tensor rank's parts, n the local rows of the residual stream. 9 N D elements on a single
/// rank with F = 4 D.
template <class T>
struct SavedActivations {
  Matrix<T> qkv, attention, middle, hidden;  // [N,3D] [N,D] [n, full D] [N,F]
  Matrix<float> log_sum;                     // [B*H,T]

  SavedActivations(memory::Arenas& arenas, const GptShape& shape, Index batch);
};

/// Activations that recomputation restores from a block's input and GEMM results with elementwise
/// and row kernels. 6 N D elements on a single rank with F = 4 D.
template <class T>
struct RecomputableActivations {
  Matrix<T> ln1, ln2, activated;             // [n, full D] twice, [N,F]
  Vector<float> mean1, rstd1, mean2, rstd2;  // [n]

  RecomputableActivations(memory::Arenas& arenas, const GptShape& shape, Index batch);
};

/// The activations that forward leaves for backward, besides the block's input. Recomputed blocks
/// use the same memory in turn.
template <class T>
struct BlockActivations : SavedActivations<T>, RecomputableActivations<T> {};

/// A block's parameters, or their gradients, as views into its flat unit, in the order of
/// gpt_table.
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

/// Computes x [n,D] to out [n,D], which may be x's memory, and fills `saved`.
template <class T>
void block_forward(const Context<T>& c, const BlockParams<const T>& p, Matrix<const T> x,
                   const BlockActivations<T>& saved, Matrix<T> out);

/// Recomputes the activations of `saved` that `mode` has not kept, with the bits that forward gave
/// them.
template <class T>
void block_recompute(const Context<T>& c, deck::RecomputeMode mode, const BlockParams<const T>& p,
                     Matrix<const T> x, const BlockActivations<T>& saved);

/// Runs backward: dx holds the gradient of the block's output on entry and that of its input on
/// return; parameter gradients are written or added as `update` says.
template <class T>
void block_backward(const Context<T>& c, const BlockParams<const T>& p, Matrix<const T> x,
                    const BlockActivations<T>& saved, kernels::Update update,
                    const BlockParams<T>& gradients, Matrix<T> dx);

}  // namespace kzero::model
