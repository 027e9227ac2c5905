// The number of threads per rank, for real and planned launches.
#pragma once

#include <optional>
#include <string>

#include "base/types.hpp"

namespace kzero::runtime {

/// The number of cores that this process may use: its affinity mask, set by launchers and batch
/// systems.
Index usable_cores();

/// The number of threads in OMP_NUM_THREADS, or the first number if it is a list; empty if it is
/// not set. Throws Error(usage) for anything that is not a number of threads that can be started:
/// OpenMP reads the variable itself and would end the process.
std::optional<Index> threads_of_environment();

/// Throws Error(usage) if run.threads is more than a process can start.
void require_startable(Index threads);

struct Threads {
  Index count = 1;     // per rank
  std::string origin;  // source of the count, for messages
};

/// Returns `asked` if it is above 0, otherwise OMP_NUM_THREADS, otherwise the cores that this
/// process may use divided by the ranks of the node. Throws as threads_of_environment.
Threads threads_per_rank(Index asked, Index node_ranks);

}  // namespace kzero::runtime
