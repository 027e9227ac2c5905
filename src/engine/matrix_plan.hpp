// Who computes which hidden matrix, and what each rank sends for it, in an optimizer that needs
// whole matrices. Pure integer arithmetic: the run, its memory plan and its expected traffic follow
// it.
//
// A parameter with its matrices belongs to one rank of the grid. In its turn the parts that data
// ranks hold of a tensor rank's local part go to the owner's data rank, and the local parts that
// the tensor ranks there hold go to the owner; results go back the same way.
#pragma once

#include "optim/matrix_owners.hpp"
#include "optim/newton_schulz.hpp"
#include "param/flat_layout.hpp"
#include "zero/stage.hpp"

namespace kzero::engine {

/// A parameter that stores hidden matrices.
struct MatrixParameter {
  Index unit = 0;
  Index in_unit = 0;  // its first element, of this tensor rank's part
  Index matrices = 1;
  optim::MatrixShape shape;          // of each matrix
  std::vector<param::Split> splits;  // of each tensor rank
};

/// A part of a matrix in a tensor rank's local part of a parameter.
struct MatrixPart {
  Index row = 0, column = 0;  // of the matrix
  Index rows = 0, columns = 0;
  Index offset = 0, stride = 0;  // in the local part
};

class MatrixPlan {
 public:
  /// No matrices.
  MatrixPlan() = default;

  /// All hidden matrices of a model: `tables` are those of all tensor ranks, `layout` is that of
  /// rank `tensor_rank`.
  MatrixPlan(const std::vector<param::Table>& tables, const param::FlatLayout& layout,
             const zero::Stage& stage, Index tensor_rank);

  bool empty() const { return parameters_.empty(); }
  const std::vector<MatrixParameter>& parameters() const { return parameters_; }
  Index data_ranks() const { return data_ranks_; }
  Index tensor_ranks() const { return tensor_ranks_; }
  Index tensor_rank() const { return tensor_rank_; }

  /// Turns in which every rank computes at most one parameter's matrices.
  Index rounds() const { return owners_.rounds(); }

  /// The parameter of a rank in a turn; null for none.
  const MatrixParameter* at(Index round, Index data_rank, Index tensor_rank) const;

  /// True if data ranks hold parts of a local part, which have to be gathered; else each holds all
  /// of it.
  bool gathers() const { return placement_ == zero::Placement::partitioned; }

  /// The elements of this tensor rank's local part that a data rank holds.
  zero::Range held(const MatrixParameter& p, Index data_rank) const;

  /// The first of them in a buffer of what the data rank holds of the unit; any place if it holds
  /// none.
  Index first_held(const MatrixParameter& p, Index data_rank) const;

  /// The elements of a tensor rank's local part.
  Index local_elements(const MatrixParameter& p, Index tensor_rank) const {
    return p.splits[tensor_rank].held();
  }

  /// The tensor rank that gives the owner the local part that `tensor_rank` has, perhaps a copy.
  Index source(const MatrixParameter& p, Index tensor_rank) const;

  /// The first element of that local part in a buffer of all different ones.
  Index offset(const MatrixParameter& p, Index tensor_rank) const;

  /// Returns where matrix number `matrix` lies in a tensor rank's local part.
  MatrixPart part(const MatrixParameter& p, Index tensor_rank, Index matrix) const;

  /// The shapes of all matrices.
  std::vector<optim::MatrixShape> shapes() const;

  /// Elements of buffers that serve every turn: of this tensor rank's local parts of all that a
  /// data rank gathers in a turn, of which that for tensor rank t begins at local_begin(round,
  /// data, t); and of a full parameter, for tensor ranks that hold local parts.
  Index gathered_elements() const;
  Index local_begin(Index round, Index data_rank, Index tensor_rank) const;
  Index whole_elements() const;

  /// Operations of the rank that has most to compute in a step.
  double most_operations() const;

  /// Operations of one rank of the grid in a step; 0 without matrices.
  double operations(Index data_rank, Index tensor_rank) const;

 private:
  std::vector<param::UnitLayout> layout_;
  zero::Placement placement_ = zero::Placement::replicated;
  Index data_ranks_ = 1, tensor_ranks_ = 1, tensor_rank_ = 0;
  std::vector<MatrixParameter> parameters_;
  optim::MatrixOwners owners_{{}, 1};
};

/// Elements that a rank sends in a step for the matrices.
struct MatrixTraffic {
  Index gathered = 0;                              // to owners, in its data group
  Index returned = 0;                              // from it as an owner
  Index gathered_tensor = 0, returned_tensor = 0;  // the same in its tensor group
};

MatrixTraffic traffic_of(const MatrixPlan& plan, Index data_rank);

}  // namespace kzero::engine
