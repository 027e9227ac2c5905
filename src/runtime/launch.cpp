#include "runtime/launch.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/version.hpp"
#include "runtime/host_name.hpp"

namespace kzero::runtime {

namespace {

/// The integer at the start of a variable's value; empty if the variable is not set or does not
/// begin with an integer.
std::optional<int> environment_number(const char* variable) {
  const char* value = std::getenv(variable);
  const std::string_view text = value == nullptr ? "" : value;
  int number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

pid_t parent = 0;
int connection = -1;  // to the launcher's process on this node

/// The number of consecutive calls before a launcher counts as lost. A launcher that aborts closes
/// connections before it ends its ranks. One that finalizes closes them before MPI_Finalize
/// returns, which may take long on a busy node. In neither case is the launcher lost.
constexpr int calls_until_lost = 3;
constexpr int calls_until_lost_in_finalize = 60;

std::atomic<int> tolerated_calls = calls_until_lost;

std::optional<int> first_number(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto number = environment_number(name)) return number;
  }
  return std::nullopt;
}

/// Whether the launcher is Hydra, MPICH's, which speaks PMI-1.
bool launcher_is_hydra() { return std::getenv("HYDI_CONTROL_FD") != nullptr && connection >= 0; }

/// Does nothing if Hydra has closed the connection.
void send_to_hydra(const std::string& command) {
  (void)!::send(connection, command.data(), command.size(), MSG_NOSIGNAL);
}

/// Whether Hydra's next line begins with this command; newer versions add a status. Calls
/// `meanwhile` until the line has come.
bool hydra_answers(std::string_view command, const std::function<void()>& meanwhile) {
  std::string line;
  while (!line.ends_with('\n')) {
    pollfd found{.fd = connection, .events = POLLIN, .revents = 0};
    if (::poll(&found, 1, 1) == 0) {
      meanwhile();
      continue;
    }
    char next = 0;
    if (::read(connection, &next, 1) != 1) return false;
    line += next;
  }
  return line.starts_with(command);
}

}  // namespace

std::optional<int> launch_rank() { return first_number({"PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}); }

std::optional<int> launch_size() {
  return first_number({"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"});
}

void remember_launcher() {
  if (!launch_rank()) return;
  parent = ::getppid();
  connection = environment_number("PMI_FD").value_or(-1);
}

void leave_used_launch() {
  if (connection < 0) return;
  pollfd found{.fd = connection, .events = 0, .revents = 0};
  if (::poll(&found, 1, 0) != 1) return;  // POLLNVAL: a process between closed its descriptors
  KZERO_REQUIRE(launch_size().value_or(1) == 1, ExitCode::usage,
                "an MPI program has run in the tasks of this launch before, and a launch is for "
                "one; start each by an srun or mpiexec of its own");
  for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE"}) unsetenv(name);
  parent = 0;
  connection = -1;
}

bool launcher_is_gone() {
  if (parent == 0) return false;
  if (connection < 0) return ::getppid() != parent;
  pollfd found{.fd = connection, .events = 0, .revents = 0};
  return ::poll(&found, 1, 0) == 1 && (found.revents & (POLLHUP | POLLERR)) != 0;
}

void expect_closed_connection() { tolerated_calls = calls_until_lost_in_finalize; }

void ask_launcher_to_abort(int exit_code) {
  // A rank that is lost before it has answered once keeps Hydra waiting.
  if (launcher_is_hydra()) send_to_hydra(fmt::format("cmd=abort exitcode={}\n", exit_code));
}

bool leave_hydra(const std::function<void()>& meanwhile) {
  if (!launcher_is_hydra()) return false;
  send_to_hydra("cmd=barrier_in\n");
  if (!hydra_answers("cmd=barrier_out", meanwhile)) return false;
  send_to_hydra("cmd=finalize\n");
  return hydra_answers("cmd=finalize_ack", meanwhile);
}

void end_without_launcher() {
  static int calls = 0;
  calls = launcher_is_gone() ? calls + 1 : 0;
  if (calls < tolerated_calls) return;
  const std::string text =
      fmt::format("kzero: rank {} on {}: its launcher is gone, so this rank ends\n",
                  launch_rank().value_or(0), host_name());
  (void)!::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(static_cast<int>(ExitCode::other));
}

namespace {

struct Launcher {
  const char* ranks;  // the variable with the number of ranks started
  const char* name;
};

// SLURM_NTASKS is not used: batch scripts have it although they have not started any rank. Only
// srun sets the variables of a step.
constexpr Launcher launchers[] = {{"PMI_SIZE", "mpiexec or srun"},
                                  {"MPI_LOCALNRANKS", "mpiexec"},
                                  {"OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"},
                                  {"MV2_COMM_WORLD_SIZE", "MVAPICH2's launcher"},
                                  {"SLURM_STEP_NUM_TASKS", "srun"}};

int number_of(const char* variable) { return environment_number(variable).value_or(0); }

/// The launcher to use instead: that of the build, if this machine has it.
std::string own_launcher() {
  const std::string path = mpi_launcher();
  const bool is_here = !path.empty() && ::access(path.c_str(), X_OK) == 0;
  return is_here ? path : "the mpiexec of the MPI library that kzero --version names";
}

}  // namespace

std::optional<ForeignLaunch> foreign_launch(int mpi_ranks) {
  if (mpi_ranks != 1) return std::nullopt;
  // mpiexec -n 1 starts its proxies by srun, with one task per node.
  const bool is_own_single = number_of("PMI_SIZE") == 1;
  for (const Launcher& launcher : launchers) {
    const bool is_slurm = std::string_view(launcher.ranks).starts_with("SLURM");
    const int ranks = number_of(launcher.ranks);
    if (ranks <= 1 || (is_slurm && is_own_single)) continue;
    return ForeignLaunch{fmt::format(
        "{0}={1}: {2} started {1} ranks, but this program's MPI library sees one alone, so each "
        "would train by itself in the same folder; start it with {3}, or with srun --mpi=pmi2 "
        "or --mpi=pmix as that supports; if {0} is left over from another launch, unset it",
        launcher.ranks, ranks, launcher.name, own_launcher())};
  }
  // PMIx tells each process its rank but not the number of ranks, so rank 0 cannot notice the
  // problem.
  if (number_of("PMIX_RANK") > 0) {
    return ForeignLaunch{
        fmt::format(
            "PMIX_RANK={}: a launcher with PMIx started several ranks, but this program's MPI "
            "library sees one alone; start it with {}",
            number_of("PMIX_RANK"), own_launcher()),
        false};
  }
  return std::nullopt;
}

}  // namespace kzero::runtime
