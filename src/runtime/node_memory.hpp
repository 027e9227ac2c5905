// How much memory this node still has for its ranks: asked before anything large is allocated,
// since a kernel that overcommits says yes to everything and kills later.
#pragma once

#include "base/types.hpp"

namespace kzero::runtime {

/// Bytes that processes of this node may still take: what the kernel calls available, or what is
/// left of this job's control group if that is less.
Index available_memory_bytes();

}  // namespace kzero::runtime
