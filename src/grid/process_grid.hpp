// The process grid: data parallel x tensor parallel, with tensor ranks innermost so that a tensor
// group stays on one node. The ranks of a data group are in the order of their shards
// (grid/node_shape.hpp), which is that of the launch if no node has several of them. Data ranks
// with consecutive positions on the nodes form a sequence group.
#pragma once

#include <span>

#include "grid/group.hpp"

namespace kzero::grid {

/// The group of all ranks of the launch. Collective over them.
Group world_group();

/// Returns whether MPI is initialized and not yet finalized: other ranks may then wait for this
/// one.
bool is_launched();

/// Aborts every rank of the launch, for a rank that fails alone. Does nothing unless is_launched().
/// Waits for the launcher's answer, which may never come.
void abort_launch(int exit_code);

class ProcessGrid {
 public:
  /// Collective over MPI_COMM_WORLD. data = 0 means number of ranks / tensor. Throws Error(usage)
  /// unless data * tensor is the number of ranks, and `sequence` divides the data ranks.
  /// `node_of_rank` has the node of every rank; empty: they share one.
  ProcessGrid(Index data, Index tensor, std::span<const int> node_of_rank = {}, Index sequence = 1)
      : ProcessGrid(world_group(), data, tensor, node_of_rank, sequence) {}

  /// Builds the grid from the ranks of `world` only. Collective over them.
  ProcessGrid(Group world, Index data, Index tensor, std::span<const int> node_of_rank = {},
              Index sequence = 1);

  const Group& world() const { return world_; }
  const Group& data() const { return data_; }
  const Group& tensor() const { return tensor_; }
  /// The `sequence` ranks of data() that share each sequence, in the order of their rows.
  const Group& sequence() const { return sequence_; }
  /// The ranks of data() on this rank's node, in the same order.
  const Group& node() const { return node_; }

  /// The rank in world() of a place on the grid.
  Index world_rank(Index data_rank, Index tensor_rank) const {
    return order_[data_rank] * tensor_.size() + tensor_rank;
  }

 private:
  Group world_;
  std::vector<int> order_;  // the data group's ranks in the order of the launch, by shard
  Group tensor_;
  Group data_;
  Group sequence_;
  Group node_;
};

}  // namespace kzero::grid
