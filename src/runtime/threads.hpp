// How many threads a rank computes with, for a launch and for one that is only planned.
#pragma once

#include <string>

#include "base/types.hpp"

namespace kzero::runtime {

/// Cores this process may use: its affinity mask, which launchers and batch systems set.
Index usable_cores();

struct Threads {
  Index count = 1;     // per rank
  std::string origin;  // what settled the count, for people
};

/// `asked` if it is above 0; else OMP_NUM_THREADS; else the cores that this process may use, over
/// the ranks of the node.
Threads threads_per_rank(Index asked, Index node_ranks);

}  // namespace kzero::runtime
