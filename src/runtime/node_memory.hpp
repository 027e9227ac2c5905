// The memory that this node still has for its ranks. It is checked before anything large is
// allocated, since a kernel that overcommits grants everything and kills the process later.
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

/// Bytes that processes of this node may still take: the kernel's available memory or, if less,
/// what remains below the limit of this process's control group (version 1 or 2) or of any group
/// around it. Reclaimable file cache of a group counts as available.
AvailableMemory available_memory(const KernelFolders& folders = {});

/// Empty if `node_ranks` ranks of this node that need these bytes each fit into what it has left;
/// else the part of a message that says what it has: "node n1 has 3 GiB left for 2 ranks".
std::string memory_shortage(Index bytes, Index node_ranks);

}  // namespace kzero::runtime
