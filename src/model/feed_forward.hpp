// The feed-forward half of a block: out = middle + down(activation(up(norm2(middle)))). It runs
// tile after tile of a chunk's rows. Weight gradients add up in fp32 over tiles.
#pragma once

#include "model/block.hpp"

namespace kzero::model {

/// Computes y = addend + x W + b, the end of each half of a block, with dropout of x W + b.
template <class T>
void add_half(const Context<T>& c, Site site, const BlockParams<const T>& p, Matrix<const T> x,
              const kernels::Dropout& dropout, Matrix<const T> addend, Matrix<T> y);

/// Computes `out` [n,D] of a chunk from saved.middle, and the activations before the last GEMM.
template <class T>
void feed_forward(const Context<T>& c, const BlockParams<const T>& p, const BlockBatch& batch,
                  const BlockActivations<T>& saved, Matrix<T> out);

/// Computes saved.activated from saved.hidden.
template <class T>
void activate(const Context<T>& c, const BlockActivations<T>& saved);

/// Computes the activations before the last GEMM from saved.middle. They must be of all tiles.
template <class T>
void fill_feed_forward(const Context<T>& c, const BlockParams<const T>& p,
                       const BlockActivations<T>& saved);

/// Runs backward from the gradient of the half's sum, `dout` [N,D], to c.hidden_grad, this rank's
/// part of the gradient of norm2's output. If activations of one tile are kept, computes them
/// again. Returns false if backward ends on the way, because nothing below trains.
template <class T>
bool feed_forward_backward(const Context<T>& c, const BlockParams<const T>& p,
                           const BlockActivations<T>& saved, tensor::Accumulate accumulate,
                           const BlockParams<T>& gradients, Matrix<const T> dout, bool needs_input);

}  // namespace kzero::model
