// The process grid: data parallel x tensor parallel, with tensor ranks innermost so that a tensor
// group stays on one node. Rank = data * tensor_size + tensor.
#pragma once

#include <mpi.h>

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
  /// unless data * tensor is the number of ranks.
  ProcessGrid(Index data, Index tensor) : ProcessGrid(world_group(), data, tensor) {}

  /// Builds the grid from the ranks of `world` only. Collective over them.
  ProcessGrid(Group world, Index data, Index tensor);

  const Group& world() const { return world_; }
  const Group& data() const { return data_; }
  const Group& tensor() const { return tensor_; }

 private:
  Group world_;
  Group tensor_;
  Group data_;
};

}  // namespace kzero::grid
