// One transformer block with a norm before each half: x + attention(norm_1(x)), then +
// feed-forward(norm_2(.)). GPT-2 has LayerNorm, GELU and biases; the Llama family RMSNorm, rotary
// positions, SwiGLU and heads that share keys and values. The block knows shapes, its flat
// parameters, its activations and its tensor group; nothing of stages or memory ownership. The
// group splits heads and feed-forward columns (Megatron-LM, arXiv 1909.08053, section 3): one
// all-reduce behind each half, forward and backward.
#pragma once

#include "deck/config.hpp"
#include "model/block_parameters.hpp"

namespace kzero::model {

/// Activations that are always saved, the results of GEMMs and of attention, with this tensor
/// rank's d columns of q, e of k and of v, f of the feed-forward layer (2 f with SwiGLU) and H
/// heads; n local rows of the residual stream. 9 N D elements on a single rank with GPT-2's F = 4
/// D. Rotary positions turn qkv in place, unless a norm comes first, whose input backward needs.
template <class T>
struct SavedActivations {
  Matrix<T> qkv, attention, middle, hidden;  // [N,d+2e] [N,d] [n,D] [N,f or 2f]
  Matrix<float> log_sum;                     // [B*H,T]

  SavedActivations(memory::Arenas& arenas, const TransformerShape& shape, Index batch);
};

/// Activations that recomputation restores from a block's input and GEMM results with elementwise
/// and row kernels. 6 N D elements on a single rank with GPT-2's F = 4 D.
template <class T>
struct RecomputableActivations {
  Matrix<T> norm1, norm2, activated;  // [n,D] twice, [N,f]
  Matrix<T> rotated;                  // [N,d+e]: q and k behind their norms, else none
  NormStatistics statistics1, statistics2;

  RecomputableActivations(memory::Arenas& arenas, const TransformerShape& shape, Index batch);
};

/// The activations that forward leaves for backward, besides the block's input. Recomputed blocks
/// use the same memory in turn.
template <class T>
struct BlockActivations : SavedActivations<T>, RecomputableActivations<T> {};

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
