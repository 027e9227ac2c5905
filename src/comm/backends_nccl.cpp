#include "comm/mpi_communicator.hpp"
#include "comm/nccl_communicator.hpp"

namespace kzero::comm {

void require_communicator(const std::string& name, bool library_sums) {
  if (name == "mpi" && library_sums) refuse_library_sums();
}

std::unique_ptr<Communicator> make_communicator(const std::string& name, Overlap overlap,
                                                const grid::Group& group, Traffic& traffic) {
  if (name == "mpi") return std::make_unique<MpiCommunicator>(overlap, group, traffic);
  return std::make_unique<NcclCommunicator>(group, traffic);
}

bool moves_by_itself(const std::string& name) { return name != "mpi"; }

}  // namespace kzero::comm
