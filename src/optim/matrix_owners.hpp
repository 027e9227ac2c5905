// Which rank computes which whole matrix. Pure integer arithmetic, the same on every rank.
#pragma once

#include <vector>

#include "base/types.hpp"

namespace kzero::optim {

/// Tasks of known cost on equal ranks, by longest processing time first (Graham, "Bounds on
/// multiprocessing timing anomalies", 1969): in the order of falling cost each goes to the rank
/// that has least to do. The longest rank has at most 4/3 of what the best assignment would give
/// it.
struct MatrixOwners {
  std::vector<Index> owner;               // of each task
  std::vector<std::vector<Index>> tasks;  // of each rank, in the order in which it does them
  std::vector<double> load;               // of each rank, the sum of its costs

  /// Ties go to the task and to the rank with the lower number. `ranks` is at least 1.
  MatrixOwners(const std::vector<double>& costs, Index ranks);

  /// Turns that the rank with most tasks needs.
  Index rounds() const;

  /// The task of a rank in a turn, -1 for none.
  Index task(Index rank, Index round) const;
};

}  // namespace kzero::optim
