// Collectives as pairwise exchanges over MPI, in pieces: any message size, no library temporaries,
// and an order that does not depend on the MPI library's choice of algorithm.
#pragma once

#include "comm/communicator.hpp"

namespace kzero::comm {

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(const grid::Group& group, Traffic& traffic) : Communicator(group, traffic) {}

  void all_to_all(std::span<const ConstSpan> send, std::span<const Span> receive,
                  Operation operation, Purpose purpose) override;
  void broadcast(Span data, int root, Purpose purpose) override;
};

}  // namespace kzero::comm
