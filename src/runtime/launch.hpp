// The launch that this process belongs to, as its launcher tells it through the environment: for
// messages outside of MPI's life, and to see that the launcher is gone.
#pragma once

#include <optional>

namespace kzero::runtime {

/// This process's rank; none without a launcher.
std::optional<int> launch_rank();

/// To be called first in main, while the launcher is surely there.
void remember_launcher();

/// Whether what started this rank on this node has ended: its connection is closed or, where a
/// launcher keeps none, another process has become the parent. Never true without a launcher.
bool launcher_is_gone();

/// Ends a rank that has lost its launcher, with a word. Such a rank cannot reach new ranks, is
/// known to no batch system any more, and would meet the job's next launch in the same folder.
void end_without_launcher();

}  // namespace kzero::runtime
