// The views of a block's parameters in its flat unit.
#pragma once

#include "model/linear.hpp"
#include "model/norm.hpp"

namespace kzero::model {

/// A block's parameters, or their gradients, as views into its flat unit, in the order of
/// parameter_table. GEMMs that read the same input are one: q, k, v; gate and up.
template <class T>
struct BlockParams {
  Norm<T> norm1;
  Linear<T> qkv;             // D to d + 2 e, d and e: widths of this rank's heads of q, and of k, v
  Vector<T> q_norm, k_norm;  // [head width] each, or none
  Linear<T> projection;      // d to D
  Norm<T> norm2;
  Linear<T> up;    // D to f, this rank's part of the feed-forward width, or 2 f: gate and up
  Linear<T> down;  // f to D

  BlockParams(const TransformerShape& shape, T* unit);
};

}  // namespace kzero::model
