// The launch that this process belongs to, as the launcher's environment describes it. Used for
// messages while MPI is not initialized, and to detect that the launcher is gone.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace kzero::runtime {

/// This process's rank; empty without a launcher.
std::optional<int> launch_rank();

/// The number of ranks; empty without a launcher, or if the launcher does not tell.
std::optional<int> launch_size();

/// Records the launcher's connection. Call it first in main, while the launcher still exists.
void remember_launcher();

/// Call it before MPI_Init. A launcher closes its connection when an MPI program ends. If a shell
/// under a launcher (srun --pty bash) has run one, MPICH's MPI_Init in a second one dies of
/// SIGPIPE. With one task, this removes the launcher's variables, so that MPI starts without a
/// launcher. Throws with several tasks.
void leave_used_launch();

/// Returns whether the process that started this rank on this node has ended: its connection is
/// closed or, for a launcher without one, the parent process has changed. Always false without a
/// launcher.
bool launcher_is_gone();

/// Announces that MPI is about to finalize: the launcher then closes its connection in good order.
void expect_closed_connection();

/// Asks Hydra, MPICH's launcher, to end all ranks of the launch. MPI_Abort does the same, but must
/// not be called before MPI_Init returns. Does nothing under other launchers.
void ask_launcher_to_abort(int exit_code);

/// Leaves a launch of Hydra's as MPI_Finalize does, but without MPI. Waits until every rank has
/// called this or MPI_Finalize, and calls `meanwhile` every millisecond. Then announces this rank's
/// end: the process may now end without MPI_Finalize, and its exit code counts. Returns false at
/// once under other launchers, and if Hydra does not answer as expected. Collective over the ranks
/// of the launch that do not call MPI_Finalize.
bool leave_hydra(const std::function<void()>& meanwhile);

/// Ends this rank with a message if its launcher was gone in several consecutive calls. Call it
/// once a second from one thread. Such a rank cannot reach new ranks, no batch system knows it any
/// more, and the job's next launch would meet it in the same folder.
void end_without_launcher();

// Detects that another MPI's launcher started this process. Its ranks cannot see one another here,
// and each would train alone in the same folder.

struct ForeignLaunch {
  std::string problem;
  bool all_know = true;  // every rank detects it, so that one may report for all
};

/// Describes the problem if MPI sees a single rank while the environment describes a launch of
/// several. Empty for a launch by this program's own MPI, for a process without a launcher, and for
/// a process in a batch script outside of its steps.
std::optional<ForeignLaunch> foreign_launch(int mpi_ranks);

}  // namespace kzero::runtime
