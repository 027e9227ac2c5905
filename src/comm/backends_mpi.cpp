#include "base/error.hpp"
#include "comm/backends.hpp"
#include "comm/mpi_communicator.hpp"

namespace kzero::comm {

// For builds without a device library of collectives; backends_nccl.cpp is for builds with NCCL.
void require_communicator(CommunicatorKind kind, bool library_sums) {
  KZERO_REQUIRE(kind == CommunicatorKind::mpi || kind == CommunicatorKind::automatic,
                ExitCode::usage, "run.communicator = \"{}\" is not in this build; it has \"mpi\"",
                name_of(kind));
  if (library_sums) refuse_library_sums();
}

std::unique_ptr<Communicator> make_communicator(CommunicatorKind kind, Overlap overlap,
                                                const grid::Group& group, Traffic& traffic,
                                                Waits waits) {
  require_communicator(kind, false);
  return std::make_unique<MpiCommunicator>(overlap, group, traffic, mpi_reach(), waits);
}

// A login node's build plans decks for GPUs, too.
bool moves_by_itself(CommunicatorKind kind) { return kind == CommunicatorKind::nccl; }

}  // namespace kzero::comm
