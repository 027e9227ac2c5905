#include "base/error.hpp"
#include "comm/mpi_communicator.hpp"

namespace kzero::comm {

// Backends of builds without a device library of collectives; backends_nccl.cpp has those of builds
// with one.
void require_communicator(const std::string& name, bool library_sums) {
  KZERO_REQUIRE(name == "mpi" || name == "auto", ExitCode::usage,
                "run.communicator = \"{}\" is not in this build; it has \"mpi\"", name);
  if (library_sums) refuse_library_sums();
}

std::unique_ptr<Communicator> make_communicator(const std::string& name, Overlap overlap,
                                                const grid::Group& group, Traffic& traffic) {
  require_communicator(name, false);
  return std::make_unique<MpiCommunicator>(overlap, group, traffic);
}

bool moves_by_itself(const std::string&) { return false; }

}  // namespace kzero::comm
