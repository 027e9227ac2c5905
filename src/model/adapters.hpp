// Low-rank adapters (LoRA, Hu et al., arXiv 2106.09685) of the layers of one GEMM of a block: y +=
// scale * (x A^T) B^T, with A [r,in] and B [out,r] of this tensor rank. Backward computes x A^T
// again instead of keeping it.
#pragma once

#include "model/block_parameters.hpp"

namespace kzero::model {

/// Adds the products of the site's adapters to y, the site's output [N, columns], from its input x
/// [N,in]. In a row-parallel layer over a tensor group, y is this rank's part of the sum. `unit`
/// has the block's adapters.
template <class T>
void adapters_forward(const Context<T>& c, Site site, const T* unit, Matrix<const T> x,
                      Matrix<T> y);

/// The operands of backward: the input x [N,in] of the site's GEMM, the gradient dy [N, columns] of
/// its output, and the block's adapters and their gradients, which are overwritten or added to, as
/// `accumulate` selects. With `sums`, this rank's gradients go there instead, in fp32 and at the
/// same places.
template <class T>
struct AdapterGradients {
  Matrix<const T> x, dy;
  const T* unit;
  T* gradients;
  tensor::Accumulate accumulate;
  float* sums = nullptr;
};

/// Computes the gradients of the site's adapters. Adds scale * (dy B) A to the first columns of dx,
/// unless dx is empty. Gradients of replicated parameters are summed over the tensor group, in rank
/// order, unless they go to `sums`. Collective over the tensor group.
template <class T>
void adapters_backward(const Context<T>& c, Site site, const AdapterGradients<T>& g, Matrix<T> dx);

/// Computes the gradients `g` of the site's adapters (=|+=) from `sums` of adapters_backward,
/// rounded once and summed over the tensor group. Collective over it.
template <class T>
void store_adapter_sums(const Context<T>& c, Site site, const float* sums,
                        tensor::Accumulate accumulate, const BlockParams<T>& g);

/// row_parallel_forward of a site that may have adapters. Collective over the tensor group.
template <class T>
void adapted_row_parallel_forward(const Context<T>& c, Site site, const BlockParams<const T>& p,
                                  Matrix<const T> x, const T* addend, Matrix<T> y);

}  // namespace kzero::model
