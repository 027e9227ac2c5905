// The attention half of a block behind its norm: projections to q, k, v, positions, attention.
#pragma once

#include "model/block.hpp"

namespace kzero::model {

/// Computes saved.qkv from saved.norm1, and saved.attention from that.
template <class T>
void attention_half_forward(const Context<T>& c, const BlockParams<const T>& p,
                            const BlockActivations<T>& saved);

/// Restores saved.rotated, if the block has it, from saved.qkv.
template <class T>
void restore_rotated(const Context<T>& c, const BlockParams<const T>& p,
                     const BlockActivations<T>& saved);

/// Computes the gradients of the projections to q, k, v and of their norms, and into c.hidden_grad
/// this rank's part of the gradient of saved.norm1, from that of saved.attention there [N,d].
/// Collective over the tensor group.
template <class T>
void attention_half_backward(const Context<T>& c, const BlockParams<const T>& p,
                             const BlockActivations<T>& saved, kernels::Update update,
                             const BlockParams<T>& gradients);

}  // namespace kzero::model
