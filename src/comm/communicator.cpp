#include "comm/communicator.hpp"

#include <vector>

#include "base/error.hpp"
#include "comm/mpi_communicator.hpp"

namespace kzero::comm {

void Communicator::all_gather(ConstSpan mine, std::span<const Span> receive, Purpose purpose) {
  const std::vector<ConstSpan> send(size(), mine);
  all_to_all(send, receive, Operation::all_gather, purpose);
}

std::unique_ptr<Communicator> make_communicator(const std::string& name, const grid::Group& group,
                                                Traffic& traffic) {
  KZERO_REQUIRE(name == "mpi", ExitCode::usage,
                "run.communicator = \"{}\" is not in this build; it has \"mpi\"", name);
  return std::make_unique<MpiCommunicator>(group, traffic);
}

}  // namespace kzero::comm
