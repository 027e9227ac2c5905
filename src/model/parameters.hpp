// The parameters of a model, each declared once. A layer adds its parameters to a unit and keeps
// where they begin. So the same declaration gives the parameter table and, with memory, the views.
#pragma once

#include <string>
#include <utility>

#include "model/families.hpp"

namespace kzero::model {

/// A dimension of a parameter: the part that this tensor rank holds, and the number of lower ranks
/// that hold the same part.
struct Extent {
  Index total = 0;
  Index begin = 0;
  Index length = 0;
  Index copy = 0;
};

/// The dimensions along which a tensor group splits parameters (Megatron-LM, arXiv 1909.08053,
/// section 3).
struct Extents {
  Extent width, kv_width, feed_forward, shared_expert, vocab;

  explicit Extents(const TransformerShape& shape);
};

/// A unit of parameters while its layers declare them, in the order of memory.
class UnitParameters {
 public:
  /// The names of all parameters begin with `prefix`.
  explicit UnitParameters(std::string name, std::string prefix = "")
      : spec_{std::move(name), {}}, prefix_(std::move(prefix)) {}

  /// Adds a parameter. Returns where this rank's elements begin in the flat unit.
  Index add(param::ParamSpec p);

  Index elements() const { return elements_; }
  param::UnitSpec take() && { return std::move(spec_); }

 private:
  param::UnitSpec spec_;
  std::string prefix_;
  Index elements_ = 0;
};

/// What a layer needs to declare its parameters: those of block i and of its adapters, or those of
/// another unit.
struct Declaration {
  const TransformerShape& shape;
  const TransformerFamily& family;
  Extents extents;
  Index block = -1;          // i, or -1 for another unit
  double std, residual_std;  // of weights, and of those that write to the residual stream
  UnitParameters own, adapters;

  /// Declares a unit outside the blocks.
  Declaration(const TransformerShape& shape, const deck::Model& model, std::string unit);
  /// Declares block i.
  Declaration(const TransformerShape& shape, const deck::Model& model, Index i);

 private:
  Declaration(const TransformerShape& shape, const deck::Model& model, UnitParameters own,
              UnitParameters adapters);
};

/// [length], replicated.
param::ParamSpec vector_spec(std::string name, Index length, param::Init init = param::Init::zeros);

/// [groups * extent]: the bias of those outputs.
param::ParamSpec bias_spec(std::string name, Index groups, const Extent& e);

/// [rows, columns], replicated.
param::ParamSpec matrix_spec(std::string name, Index rows, Index columns, double std);

/// [extent, columns], split by rows.
param::ParamSpec split_by_rows(std::string name, const Extent& e, Index columns, double std);

/// [rows, groups * extent]: the columns of every group are split in the same way.
param::ParamSpec split_by_columns(std::string name, Index rows, Index groups, const Extent& e,
                                  double std);

/// The flat units of a block: its own parameters or their gradients, and those of its adapters.
/// Null: it has no adapters, or no gradients because its own parameters are frozen.
template <class T>
struct BlockUnits {
  T* own = nullptr;
  T* adapters = nullptr;
};

}  // namespace kzero::model
