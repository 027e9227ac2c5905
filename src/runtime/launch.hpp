// The launch that this process belongs to, as the launcher's environment describes it: for messages
// while MPI is not initialized, and to detect that the launcher is gone.
#pragma once

#include <optional>

namespace kzero::runtime {

/// This process's rank; empty without a launcher.
std::optional<int> launch_rank();

/// Records the launcher's connection. Call it first in main, while the launcher certainly exists.
void remember_launcher();

/// Returns whether the process that started this rank on this node has ended: its connection is
/// closed or, where a launcher keeps none, the parent process has changed. Never true without a
/// launcher.
bool launcher_is_gone();

/// Ends a rank that has lost its launcher, with a message. Such a rank cannot reach new ranks, no
/// batch system knows it any more, and the job's next launch would meet it in the same folder.
void end_without_launcher();

}  // namespace kzero::runtime
