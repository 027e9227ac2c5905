// The plan of an optimizer that needs complete matrices: which rank computes each hidden matrix,
// and which elements every rank sends for it. The run, the memory plan and the expected traffic
// share this integer arithmetic.
//
// One rank of the grid owns a parameter with all its matrices. In the parameter's round, data ranks
// send their parts of each local part to the owner's data rank. The tensor ranks of that data rank
// then send the local parts to the owner. Results return the same way.
#pragma once

#include <span>
#include <vector>

#include "optim/matrix_owners.hpp"
#include "optim/matrix_shape.hpp"
#include "param/flat_layout.hpp"
#include "zero/stage.hpp"

namespace kzero::engine {

/// A parameter that stores hidden matrices.
struct MatrixParameter {
  Index unit = 0;
  Index in_unit = 0;  // position in the unit of this tensor rank's part
  Index matrices = 1;
  optim::MatrixShape shape;          // of each matrix
  std::vector<param::Split> splits;  // of each tensor rank
};

/// The part of a matrix that a tensor rank's local part of a parameter contains.
struct MatrixPart {
  Index row = 0, column = 0;  // in the matrix
  Index rows = 0, columns = 0;
  Index offset = 0, stride = 0;  // in the local part
};

class MatrixPlan {
 public:
  MatrixPlan() = default;

  /// Plans all hidden matrices of a model. `tables` contains one table per tensor rank. `layout` is
  /// the layout of `tensor_rank`.
  MatrixPlan(const std::vector<param::Table>& tables, const param::FlatLayout& layout,
             const zero::Stage& stage, Index tensor_rank);

  bool empty() const { return parameters_.empty(); }
  const std::vector<MatrixParameter>& parameters() const { return parameters_; }
  Index data_ranks() const { return data_ranks_; }
  Index tensor_ranks() const { return tensor_ranks_; }
  Index tensor_rank() const { return tensor_rank_; }

  /// The number of rounds. In a round, every rank computes at most one parameter's matrices.
  Index rounds() const { return owners_.rounds(); }

  /// Returns a rank's parameter in a round, or null.
  const MatrixParameter* at(Index round, Index data_rank, Index tensor_rank) const;

  /// Returns whether local parts are partitioned over data ranks and must be gathered. Otherwise
  /// each data rank holds its complete local part.
  bool gathers() const { return placement_ == zero::Placement::partitioned; }

  /// Returns the range of this tensor rank's local part that a data rank holds.
  zero::Range held(const MatrixParameter& p, Index data_rank) const;

  /// Returns where that range begins in a buffer of the data rank's part of the unit. Undefined for
  /// an empty range.
  Index first_held(const MatrixParameter& p, Index data_rank) const;

  /// The elements of a tensor rank's local part.
  Index local_elements(const MatrixParameter& p, Index tensor_rank) const {
    return p.splits[tensor_rank].held();
  }

  /// Returns the tensor rank that sends the owner the local part of `tensor_rank`. Several ranks
  /// may hold copies of that part.
  Index source(const MatrixParameter& p, Index tensor_rank) const;

  /// Returns where that local part begins in a buffer of all distinct parts.
  Index offset(const MatrixParameter& p, Index tensor_rank) const;

  /// Returns the position of matrix number `matrix` in a tensor rank's local part.
  MatrixPart part(const MatrixParameter& p, Index tensor_rank, Index matrix) const;

  std::vector<optim::MatrixShape> shapes() const;

  /// Elements of buffers that are large enough for every round. gathered_elements() covers the
  /// local parts of this tensor rank that a data rank gathers in a round. The part for tensor rank
  /// t begins at local_begin(round, data, t). whole_elements() covers a full parameter. It is 0 if
  /// there is one tensor rank.
  Index gathered_elements() const;
  Index local_begin(Index round, Index data_rank, Index tensor_rank) const;
  Index whole_elements() const;

  /// The operations per step on the rank with the most work.
  double max_operations() const;

  /// The operations per step on one rank of the grid. 0 without matrices.
  double operations(Index data_rank, Index tensor_rank) const;

 private:
  std::vector<param::UnitLayout> layout_;
  zero::Placement placement_ = zero::Placement::replicated;
  Index data_ranks_ = 1, tensor_ranks_ = 1, tensor_rank_ = 0;
  std::vector<MatrixParameter> parameters_;
  optim::MatrixOwners owners_{{}, 1};
};

/// The elements that a rank sends for matrices in a step.
struct MatrixTraffic {
  Index gathered = 0;  // to owners in its data group
  Index returned = 0;  // from the rank as an owner to its data group
  Index gathered_between_nodes = 0, returned_between_nodes = 0;  // parts of these
  Index gathered_tensor = 0, returned_tensor = 0;                // the same in its tensor group
};

/// `nodes` has the node of every data rank.
MatrixTraffic traffic_of(const MatrixPlan& plan, Index data_rank, std::span<const int> nodes);

}  // namespace kzero::engine
