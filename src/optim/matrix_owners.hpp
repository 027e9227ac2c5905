// Assigns full matrices to ranks. All ranks compute the same assignment, in integer arithmetic
// only.
#pragma once

#include <vector>

#include "base/types.hpp"

namespace kzero::optim {

/// Tasks of known cost on equal ranks, by longest processing time first (Graham, "Bounds on
/// multiprocessing timing anomalies", 1969). In order of decreasing cost, each task goes to the
/// least loaded rank. The largest load is at most 4/3 of the optimum.
struct MatrixOwners {
  std::vector<Index> owner;               // of each task
  std::vector<std::vector<Index>> tasks;  // of each rank, in order of execution
  std::vector<double> load;               // of each rank: the sum of its costs

  /// Ties go to the lower task number and the lower rank. `ranks` is at least 1.
  MatrixOwners(const std::vector<double>& costs, Index ranks);

  /// Rounds needed by the rank with the most tasks.
  Index rounds() const;

  /// The task of a rank in a round, or -1 if the rank has none.
  Index task(Index rank, Index round) const;
};

}  // namespace kzero::optim
