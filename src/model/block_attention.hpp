// The attention half of a block after its norm: projections to q, k and v, positions, attention.
#pragma once

#include "model/block.hpp"

namespace kzero::model {

/// Computes saved.qkv from saved.norm1, then saved.attention from saved.qkv.
template <class T>
void attention_half_forward(const Context<T>& c, const BlockParams<const T>& p,
                            const BlockBatch& batch, const BlockActivations<T>& saved);

/// Restores saved.rotated from saved.qkv if the block has it.
template <class T>
void restore_rotated(const Context<T>& c, const BlockParams<const T>& p,
                     const kernels::Documents& documents, const BlockActivations<T>& saved);

/// Computes the gradients of the projections to q, k and v and of their norms. c.hidden_grad holds
/// the gradient of saved.attention [N,d] on entry and, if `needs_input`, this rank's part of the
/// gradient of saved.norm1 on return. Collective over the tensor group.
template <class T>
void attention_half_backward(const Context<T>& c, const BlockParams<const T>& p,
                             const BlockBatch& batch, const BlockActivations<T>& saved,
                             tensor::Accumulate accumulate, const BlockParams<T>& gradients,
                             bool needs_input);

}  // namespace kzero::model
