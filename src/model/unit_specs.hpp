// Builds the entries of a family's parameter table for the local parameters of one tensor rank.
#pragma once

#include <string>

#include "model/transformer_shape.hpp"

namespace kzero::model {

/// A part of one dimension of a parameter. `copy` is the number of lower ranks that hold the same
/// part.
struct Extent {
  Index total = 0;
  Index begin = 0;
  Index length = 0;
  Index copy = 0;
};

class UnitSpecs {
 public:
  UnitSpecs(const TransformerShape& shape, const deck::Model& model);
  virtual ~UnitSpecs() = default;

  virtual param::UnitSpec embedding() const = 0;
  virtual param::UnitSpec block(Index i) const = 0;
  virtual param::UnitSpec head() const = 0;

  /// The adapters of block i, whose parameters' names begin with `block`: A, then B of each. A is
  /// drawn uniformly from +- 1 / sqrt(in), as in PEFT, and B is zero.
  param::UnitSpec adapters(Index i, const std::string& block) const;

 protected:
  /// Marks a parameter as `matrices` adjacent hidden matrices.
  static param::ParamSpec hidden(param::ParamSpec p, Index matrices = 1);
  /// [rows, columns], replicated.
  static param::ParamSpec matrix(std::string name, Index rows, Index columns, double std);
  /// [length], replicated.
  static param::ParamSpec vector(std::string name, Index length,
                                 param::Init init = param::Init::zeros);
  /// [extent, columns], split by rows.
  static param::ParamSpec rows(std::string name, const Extent& e, Index columns, double std);
  /// [rows, groups * extent]: the columns of every group are split in the same way.
  static param::ParamSpec columns(std::string name, Index rows, Index groups, const Extent& e,
                                  double std);
  /// [groups * extent]: the bias of those columns.
  static param::ParamSpec part(std::string name, Index groups, const Extent& e);

  /// The outputs of a layer as `groups` equal parts, each split over the tensor ranks as `extent`.
  struct Outputs {
    Index groups;
    Extent extent;
  };
  Outputs outputs_of(const LinearLayer& layer) const;

  const TransformerShape& s_;
  double std_, residual_std_;  // of weights, and of those that write to the residual stream
  Extent width_, kv_width_, feed_forward_, vocab_;
};

}  // namespace kzero::model
