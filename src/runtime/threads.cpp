#include "runtime/threads.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>

namespace kzero::runtime {

Index usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

Threads threads_per_rank(Index asked, Index node_ranks) {
  if (asked > 0) return {asked, "as set"};
  if (const char* value = std::getenv("OMP_NUM_THREADS"))
    return {std::max(1, std::atoi(value)), "from OMP_NUM_THREADS"};
  return {std::max<Index>(1, usable_cores() / node_ranks), "this node's cores over its ranks"};
}

}  // namespace kzero::runtime
