// Whether another MPI's launcher started this process. Its ranks cannot see one another here, and
// each would train alone in the same folder.
#pragma once

#include <optional>
#include <string>

namespace kzero::runtime {

struct ForeignLaunch {
  std::string problem;
  bool all_know = true;  // every rank finds it, so that one may speak for all
};

/// What is wrong where MPI sees a single rank while the environment tells of a launch of several;
/// nothing for a launch of this program's own MPI, for a process without launcher, and for one in
/// a batch job's script, outside of its steps.
std::optional<ForeignLaunch> foreign_launch(int mpi_ranks);

}  // namespace kzero::runtime
