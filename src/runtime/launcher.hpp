// Detects that another MPI's launcher started this process. Its ranks cannot see one another here,
// and each would train alone in the same folder.
#pragma once

#include <optional>
#include <string>

namespace kzero::runtime {

struct ForeignLaunch {
  std::string problem;
  bool all_know = true;  // every rank detects it, so that one may report for all
};

/// Describes the problem if MPI sees a single rank while the environment describes a launch of
/// several. Empty for a launch by this program's own MPI, for a process without a launcher, and for
/// a process in a batch script outside of its steps.
std::optional<ForeignLaunch> foreign_launch(int mpi_ranks);

}  // namespace kzero::runtime
