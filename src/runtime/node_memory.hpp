// How much memory this node still has for its ranks: asked before anything large is allocated,
// since a kernel that overcommits says yes to everything and kills later.
#pragma once

#include <string>

#include "base/types.hpp"

namespace kzero::runtime {

/// Where the kernel's files are; tests have their own.
struct KernelFolders {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

struct AvailableMemory {
  Index bytes = 0;
  std::string limit{};  // the control group's file that allows no more; empty: the node itself
};

/// Bytes that processes of this node may still take: what the kernel calls available, or what is
/// left below the limit of this process's control group or of any group around it, of version 1 or
/// 2, if that is less. File cache that a group could give back counts as left.
AvailableMemory available_memory(const KernelFolders& folders = {});

}  // namespace kzero::runtime
