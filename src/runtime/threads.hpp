// How many threads a rank computes with, for a launch and for one that is only planned.
#pragma once

#include <optional>
#include <string>

#include "base/types.hpp"

namespace kzero::runtime {

/// Cores this process may use: its affinity mask, which launchers and batch systems set.
Index usable_cores();

/// What OMP_NUM_THREADS asks for, of a list its first number; nothing if it is not set. Throws
/// Error(usage) if it is no number of threads that could be started: OpenMP reads the variable
/// itself and would end the process.
std::optional<Index> threads_of_environment();

/// Throws Error(usage) for more threads (run.threads) than a process could start.
void require_startable(Index threads);

struct Threads {
  Index count = 1;     // per rank
  std::string origin;  // what settled the count, for people
};

/// `asked` if it is above 0; else OMP_NUM_THREADS; else the cores that this process may use, over
/// the ranks of the node. Throws as threads_of_environment.
Threads threads_per_rank(Index asked, Index node_ranks);

}  // namespace kzero::runtime
