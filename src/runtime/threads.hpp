// The number of threads per rank, both for a launch and for a planned one.
#pragma once

#include <optional>
#include <string>

#include "base/types.hpp"

namespace kzero::runtime {

/// The number of cores this process may use: its affinity mask, which launchers and batch systems
/// set.
Index usable_cores();

/// The number of threads in OMP_NUM_THREADS, the first number of a list; empty if it is not set.
/// Throws Error(usage) for anything that is no startable number of threads: OpenMP reads the
/// variable itself and would end the process.
std::optional<Index> threads_of_environment();

/// Throws Error(usage) if run.threads exceeds what a process could start.
void require_startable(Index threads);

struct Threads {
  Index count = 1;     // per rank
  std::string origin;  // the source of the count, for people
};

/// Returns `asked` if it is above 0; else OMP_NUM_THREADS; else the cores that this process may
/// use, divided by the ranks of the node. Throws as threads_of_environment.
Threads threads_per_rank(Index asked, Index node_ranks);

}  // namespace kzero::runtime
