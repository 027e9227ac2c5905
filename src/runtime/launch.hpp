// The launch that this process belongs to, as the launcher's environment describes it: for messages
// while MPI is not initialized, and to detect that the launcher is gone.
#pragma once

#include <optional>

namespace kzero::runtime {

/// This process's rank; empty without a launcher.
std::optional<int> launch_rank();

/// The number of ranks; empty without a launcher, or if it does not say.
std::optional<int> launch_size();

/// Records the launcher's connection. Call it first in main, while the launcher certainly exists.
void remember_launcher();

/// Returns whether the process that started this rank on this node has ended: its connection is
/// closed or, where a launcher keeps none, the parent process has changed. Never true without a
/// launcher.
bool launcher_is_gone();

/// Says that MPI is about to finalize, during which a launcher closes its connection in good order.
void expect_closed_connection();

/// Asks Hydra, MPICH's launcher, to end all ranks of the launch, as MPI_Abort does, which cannot be
/// called before MPI_Init returns. Does nothing under other launchers.
void ask_launcher_to_abort(int exit_code);

/// Ends a rank whose launcher is gone in so many calls in a row that it is lost, with a message; to
/// be called once a second from one thread. Such a rank cannot reach new ranks, no batch system
/// knows it any more, and the job's next launch would meet it in the same folder.
void end_without_launcher();

}  // namespace kzero::runtime
