#include "runtime/launcher.hpp"

#include <fmt/format.h>

#include <string_view>

#include "runtime/environment.hpp"

namespace kzero::runtime {

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
        "would train by itself in the same folder; start it with the mpiexec of the MPI that it "
        "was built with (kzero --version), or with srun --mpi=pmi2 or --mpi=pmix as that supports; "
        "if {0} is left over from another launch, unset it",
        launcher.ranks, ranks, launcher.name)};
  }
  // PMIx tells each process its rank but not the number of ranks, so rank 0 cannot notice the
  // problem.
  if (number_of("PMIX_RANK") > 0) {
    return ForeignLaunch{
        fmt::format(
            "PMIX_RANK={}: a launcher with PMIx started several ranks, but this program's MPI "
            "library sees one alone; start it with the mpiexec of the MPI that it was built with "
            "(kzero --version)",
            number_of("PMIX_RANK")),
        false};
  }
  return std::nullopt;
}

}  // namespace kzero::runtime
