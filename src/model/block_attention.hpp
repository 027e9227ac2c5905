// The attention half of a block after its norm: projections to q, k and v, positions, attention.
#pragma once

#include "model/block.hpp"

namespace kzero::model {

/// Computes q, k and v from saved.norm1, then saved.attention. Collective over the tensor group and
/// the sequence group.
template <class T>
void attention_half_forward(const Context<T>& c, const BlockParams<const T>& p,
                            const BlockBatch& batch, const BlockActivations<T>& saved);

/// Restores saved.rotated from saved.qkv if the block has it.
template <class T>
void restore_rotated(const Context<T>& c, const BlockParams<const T>& p,
                     const kernels::Documents& documents, const BlockActivations<T>& saved);

/// Computes c.qkv_grad(), the gradient of the operands of attention, from that of saved.attention
/// [N,d]. Overwrites dattention. Collective over the sequence group.
template <class T>
void attention_backward(const Context<T>& c, const BlockBatch& batch,
                        const BlockActivations<T>& saved, Matrix<T> dattention);

/// Computes the gradients of a chunk's projections to q, k and v and of their norms from `dqkv`
/// [N,d+2e], which it overwrites. If `needs_input`, c.hidden_grad receives this rank's part of the
/// gradient of saved.norm1. Collective over the tensor group.
template <class T>
void projections_backward(const Context<T>& c, const BlockParams<const T>& p,
                          const BlockBatch& batch, const BlockActivations<T>& saved, Matrix<T> dqkv,
                          tensor::Accumulate accumulate, const BlockParams<T>& g, bool needs_input);

}  // namespace kzero::model
