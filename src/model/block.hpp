// One transformer block with a norm before each half: x + attention(norm_1(x)), then +
// feed-forward(norm_2(.)). GPT-2 uses LayerNorm, GELU and biases. The Llama family uses RMSNorm,
// rotary positions, SwiGLU and shared KV heads. The block knows nothing of ZeRO stages or memory
// ownership. The tensor group splits heads and feed-forward columns (Megatron-LM, arXiv 1909.08053,
// section 3). Each half ends with one all-reduce, forward and backward.
#pragma once

#include <iterator>

#include "deck/config.hpp"
#include "model/block_parameters.hpp"
#include "model/dropout.hpp"

namespace kzero::model {

/// The results of GEMMs and of attention up to the block's middle. This tensor rank has H heads, d
/// columns of q, e columns each of k and v, f feed-forward columns (2 f with SwiGLU) and n local
/// rows of the residual stream. Rotary positions rotate qkv in place, except after q and k norms,
/// whose backward needs their input. With s sequence ranks, attention's operands and result of this
/// rank's heads are kept instead of qkv, which is kept for the backward of q and k norms only.
template <class T>
struct SavedActivations {
  Matrix<T> qkv, attention, middle;      // [N,d+2e] [N,d] [n,D]
  Matrix<T> heads_qkv, heads_attention;  // [B*T,(d+2e)/s] [B*T,d/s], or empty
  Matrix<float> log_sum;                 // [B*H/s,T]

  SavedActivations(memory::Arenas& arenas, const TransformerShape& shape, Index batch);
};

/// The result of the feed-forward part's first GEMM, of M rows: all, or those of one tile.
template <class T>
struct HiddenActivations {
  Matrix<T> hidden;  // [M,f or 2f]

  HiddenActivations(memory::Arenas& arenas, const TransformerShape& shape, Index rows);
};

/// The activations that elementwise and row kernels recompute from a block's input and GEMM
/// results.
template <class T>
struct RecomputableActivations {
  Matrix<T> norm1, norm2, activated;  // [n,D] [n or M,D] [M,f]
  Matrix<T> rotated;  // [N,d+e]: q and k after their norms, unless they are in heads_qkv
  NormStatistics statistics1, statistics2;

  /// `tile_rows` are the rows of hidden activations if they are those of one tile, otherwise 0.
  RecomputableActivations(memory::Arenas& arenas, const TransformerShape& shape, Index batch,
                          Index tile_rows);
};

/// The activations that forward saves for backward, except the block's input. Recomputed blocks
/// share this memory. The total is 15 N D elements on a single rank with GPT-2's F = 4 D.
template <class T>
struct BlockActivations : SavedActivations<T>, HiddenActivations<T>, RecomputableActivations<T> {
  bool has_one_tile = false;  // norm2, hidden and activated are those of one tile
};

/// The micro-batch of a block, in addition to its input.
struct BlockBatch {
  kernels::Documents documents{};
  BlockDropout dropout{};
};

/// The activations of a chunk, or of a tile of a chunk, except those of heads.
template <class T>
BlockActivations<T> activations_of(const BlockActivations<T>& all, const PartRows& rows);

/// The gradients of a block's parameters. Each chunk has its own.
template <class T>
class BlockGradients {
 public:
  /// `units` has the units of one chunk after those of another. The gradients are in unit `unit`.
  BlockGradients(const TransformerShape& shape, Units<T> units, Index unit)
      : shape_(shape), units_(units), unit_(unit) {}

  BlockParams<T> of(Index chunk) const {
    T* const first =
        units_[chunk * (std::ssize(units_) / shape_.sequence_rank.own_chunks()) + unit_];
    return shape_.is_frozen() ? BlockParams<T>(first) : BlockParams<T>(shape_, first);
  }

 private:
  const TransformerShape& shape_;
  Units<T> units_;
  Index unit_;
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
                    tensor::Accumulate accumulate, const BlockGradients<T>& gradients, Matrix<T> dx,
                    bool needs_input = true);

}  // namespace kzero::model
