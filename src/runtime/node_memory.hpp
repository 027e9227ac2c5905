// The memory that this node still has for its ranks. It is checked before any large allocation: a
// kernel that overcommits grants everything and kills the process later.
#pragma once

#include <string>

#include "base/types.hpp"

namespace kzero::runtime {

/// Paths of the kernel's files; tests provide their own.
struct KernelFolders {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

struct AvailableMemory {
  Index bytes = 0;
  std::string limit{};  // the control group's file that sets the limit; empty: the node itself
};

/// Bytes that processes of this node may still allocate. This is the kernel's available memory or,
/// if less, the remainder below the limit of this process's control group (version 1 or 2) or of
/// any group that contains it. Reclaimable file cache of a group counts as available.
AvailableMemory available_memory(const KernelFolders& folders = {});

/// Checks whether `node_ranks` ranks of this node, each of which needs `bytes`, fit into the
/// remaining memory. Empty if so; otherwise a part of a message: "node n1 has 3 GiB left for 2
/// ranks".
std::string memory_shortage(Index bytes, Index node_ranks);

}  // namespace kzero::runtime
