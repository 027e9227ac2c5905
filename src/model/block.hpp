// One transformer block with a norm before each half: x + attention(norm_1(x)), then +
// feed-forward(norm_2(.)). GPT-2 uses LayerNorm, GELU and biases. The Llama family uses RMSNorm,
// rotary positions, SwiGLU and shared KV heads. The block knows nothing of ZeRO stages or memory
// ownership. The tensor group splits heads and feed-forward columns (Megatron-LM, arXiv 1909.08053,
// section 3). Each half ends with one all-reduce, forward and backward.
#pragma once

#include "deck/config.hpp"
#include "model/block_parameters.hpp"
#include "model/dropout.hpp"

namespace kzero::model {

/// The activations that are always saved: the results of GEMMs and of attention. This tensor rank
/// has H heads, d columns of q, e columns each of k and v, f feed-forward columns (2 f with SwiGLU)
/// and n local rows of the residual stream. The total is 9 N D elements on a single rank with
/// GPT-2's F = 4 D. Rotary positions rotate qkv in place, except after q and k norms, whose
/// backward needs their input.
template <class T>
struct SavedActivations {
  Matrix<T> qkv, attention, middle, hidden;  // [N,d+2e] [N,d] [n,D] [N,f or 2f]
  Matrix<float> log_sum;                     // [B*H,T]

  SavedActivations(memory::Arenas& arenas, const TransformerShape& shape, Index batch);
};

/// The activations that elementwise and row kernels recompute from a block's input and GEMM
/// results. The total is 6 N D elements on a single rank with GPT-2's F = 4 D.
template <class T>
struct RecomputableActivations {
  Matrix<T> norm1, norm2, activated;  // [n,D] twice, [N,f]
  Matrix<T> rotated;                  // [N,d+e]: q and k after their norms, else empty
  NormStatistics statistics1, statistics2;

  RecomputableActivations(memory::Arenas& arenas, const TransformerShape& shape, Index batch);
};

/// The activations that forward saves for backward, except the block's input. Recomputed blocks
/// share this memory.
template <class T>
struct BlockActivations : SavedActivations<T>, RecomputableActivations<T> {};

/// The micro-batch of a block, in addition to its input.
struct BlockBatch {
  kernels::Documents documents{};
  BlockDropout dropout{};
};

/// Computes out [n,D] from x [n,D] and fills `saved`. out may be x's memory.
template <class T>
void block_forward(const Context<T>& c, const BlockParams<const T>& p, const BlockBatch& batch,
                   Matrix<const T> x, const BlockActivations<T>& saved, Matrix<T> out);

/// Recomputes the activations of `saved` that `mode` does not keep, with forward's masks. The
/// results are bitwise equal to forward's.
template <class T>
void block_recompute(const Context<T>& c, deck::RecomputeMode mode, const BlockParams<const T>& p,
                     const BlockBatch& batch, Matrix<const T> x, const BlockActivations<T>& saved);

/// Runs backward. dx holds the gradient of the block's output on entry, and that of its input on
/// return. Parameter gradients are overwritten or added to, as `accumulate` selects. With dropout,
/// saved.norm2 has no meaning afterwards. Without `needs_input`, for a frozen block below which
/// nothing trains, backward ends at its first adapter and dx has no meaning on return.
template <class T>
void block_backward(const Context<T>& c, const BlockParams<const T>& p, const BlockBatch& batch,
                    Matrix<const T> x, const BlockActivations<T>& saved,
                    tensor::Accumulate accumulate, const BlockParams<T>& gradients, Matrix<T> dx,
                    bool needs_input = true);

}  // namespace kzero::model
