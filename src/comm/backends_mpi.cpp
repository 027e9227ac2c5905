#include "base/error.hpp"
#include "comm/mpi_communicator.hpp"

namespace kzero::comm {

// For builds without a device library of collectives; backends_nccl.cpp is for those with one.
std::unique_ptr<Communicator> make_communicator(const std::string& name, Overlap overlap,
                                                const grid::Group& group, Traffic& traffic) {
  KZERO_REQUIRE(name == "mpi" || name == "auto", ExitCode::usage,
                "run.communicator = \"{}\" is not in this build; it has \"mpi\"", name);
  return std::make_unique<MpiCommunicator>(overlap, group, traffic);
}

bool moves_by_itself(const std::string&) { return false; }

}  // namespace kzero::comm
