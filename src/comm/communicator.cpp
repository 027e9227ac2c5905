#include "comm/communicator.hpp"

#include "base/error.hpp"
#include "comm/mpi_communicator.hpp"

namespace kzero::comm {

Ticket Communicator::begin_all_to_all(std::vector<ConstSpan> send, std::vector<Span> receive,
                                      Operation operation, Purpose purpose) {
  KZERO_EXPECT(static_cast<int>(send.size()) == size() &&
               static_cast<int>(receive.size()) == size());
  const Channel channel{group_.name(), operation, purpose};
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    traffic_.add(channel, send[r].elements, send[r].bytes());
  }
  return begin(std::move(send), std::move(receive), channel);
}

Ticket Communicator::begin_all_gather(ConstSpan mine, std::vector<Span> receive, Purpose purpose) {
  return begin_all_to_all(std::vector<ConstSpan>(size(), mine), std::move(receive),
                          Operation::all_gather, purpose);
}

std::unique_ptr<Communicator> make_communicator(const std::string& name, Overlap overlap,
                                                const grid::Group& group, Traffic& traffic) {
  KZERO_REQUIRE(name == "mpi", ExitCode::usage,
                "run.communicator = \"{}\" is not in this build; it has \"mpi\"", name);
  return std::make_unique<MpiCommunicator>(overlap, group, traffic);
}

}  // namespace kzero::comm
