// Views of a block's parameters in its flat unit.
#pragma once

#include "model/linear.hpp"
#include "model/norm.hpp"

namespace kzero::model {

/// A block's parameters or gradients as views in its flat unit, in the order of parameter_table.
/// Projections that share an input are one GEMM: q, k and v, and gate and up.
template <class T>
struct BlockParams {
  Norm<T> norm1;
  Linear<T> qkv;  // D to d + 2 e; d, e: width of this rank's query heads and of its KV heads
  Vector<T> q_norm, k_norm;  // [head width] each, or empty
  Linear<T> projection;      // d to D
  Norm<T> norm2;
  Linear<T> up;           // D to f, this rank's feed-forward columns, or to 2 f: gate and up
  Linear<T> down;         // f to D
  T* adapters = nullptr;  // the block's unit of adapters, if it has them

  BlockParams(const TransformerShape& shape, T* unit, T* adapters_unit = nullptr);

  /// The gradients of a frozen block: those of its adapters. All others are empty.
  explicit BlockParams(T* adapters_unit) : adapters(adapters_unit) {}
};

}  // namespace kzero::model
