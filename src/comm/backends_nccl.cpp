#include "comm/backends.hpp"
#include "comm/mpi_communicator.hpp"
#include "comm/nccl_communicator.hpp"

namespace kzero::comm {

void require_communicator(CommunicatorKind kind, bool library_sums) {
  if (kind == CommunicatorKind::mpi && library_sums) refuse_library_sums();
}

std::unique_ptr<Communicator> make_communicator(CommunicatorKind kind, Overlap overlap,
                                                const grid::Group& group, Traffic& traffic,
                                                Waits waits) {
  if (kind == CommunicatorKind::mpi)
    return std::make_unique<MpiCommunicator>(overlap, group, traffic, mpi_reach(), waits);
  return std::make_unique<NcclCommunicator>(group, traffic);
}

bool moves_by_itself(CommunicatorKind kind) { return kind != CommunicatorKind::mpi; }

}  // namespace kzero::comm
