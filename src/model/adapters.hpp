// A low-rank adapter (LoRA, Hu et al., arXiv 2106.09685) of a linear layer: y += scale * (x A^T)
// B^T, with A [r,in] and B [out,r] of this tensor rank. Backward computes x A^T again instead of
// keeping it.
#pragma once

#include "model/context.hpp"
#include "model/parameters.hpp"

namespace kzero::model {

/// An adapter on one tensor rank. A and B are adjacent in the block's unit of adapters.
/// Row-parallel layers split A by columns and replicate B. The others replicate A and split B by
/// rows.
struct Adapter {
  Index rank = 0;         // r
  float scale = 1;        // alpha / r
  Index in = 0, out = 0;  // of this tensor rank
  Index column = 0;       // of the product's result, where the layer's columns begin
  Index copies = 1;       // neighbouring tensor ranks that hold the same rows of B
  bool is_row_parallel = false;
  Index begin = 0;  // of A in the unit

  /// Parameters of A, and of A and B.
  Index inner() const { return rank * in; }
  Index elements() const { return rank * (in + out); }
};

/// The layer of an adapter: its name in the block, its inputs, and its outputs as `groups` parts
/// that are split alike.
struct AdaptedLayer {
  std::string_view path;
  Extent in;
  Index groups = 1;
  Extent out;
};

/// Declares A, drawn uniformly from +- 1 / sqrt(in) as in PEFT, and B, zero. Completes `adapter`,
/// whose column, copies and is_row_parallel are those of the layer.
Adapter declare_adapter(Declaration& block, const AdaptedLayer& layer, Adapter adapter);

/// Adds the adapter's product to the columns of y, the result of the layer's product [N,columns],
/// from its input x [N,in]. In a row-parallel layer over a tensor group, y is this rank's part of
/// the sum. `unit` has the block's adapters.
template <class T>
void adapter_forward(const Context<T>& c, const Adapter& adapter, const T* unit, Matrix<const T> x,
                     Matrix<T> y);

/// The operands of backward: the input x [N,in] of the product, the gradient dy [N,columns] of its
/// result, and the block's adapters and their gradients, which are overwritten or added to, as
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

/// Computes the gradients of A and B. Adds scale * (dy B) A to the first columns of dx, unless dx
/// is empty. Gradients of replicated parameters are summed over the tensor group, in rank order,
/// unless they go to `sums`. Collective over the tensor group.
template <class T>
void adapter_backward(const Context<T>& c, const Adapter& adapter, const AdapterGradients<T>& g,
                      Matrix<T> dx);

/// Computes the gradients (=|+=) in the unit `gradients` from `sums` of adapter_backward, rounded
/// once and summed over the tensor group. Collective over it.
template <class T>
void store_adapter_sums(const Context<T>& c, const Adapter& adapter, const float* sums,
                        tensor::Accumulate accumulate, T* gradients);

}  // namespace kzero::model
