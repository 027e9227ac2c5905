// Collectives as pairwise exchanges over MPI, in chunks. Messages may have any size, the library
// needs no temporaries, and the order of messages does not depend on the library's choice of
// algorithm. Device data that MPI cannot read passes through pinned host memory.
#pragma once

#include <atomic>
#include <optional>

#include "comm/backends.hpp"
#include "comm/communicator.hpp"
#include "comm/staging.hpp"
#include "comm/worker.hpp"

namespace kzero::comm {

class MpiCommunicator : public Communicator {
 public:
  /// Overlap::yes starts a thread that makes the MPI calls of collectives.
  MpiCommunicator(Overlap overlap, const grid::Group& group, Traffic& traffic,
                  Reach reach = mpi_reach(), Waits waits = Waits::spin);
  ~MpiCommunicator() override;

 private:
  void complete(const Execution& stream, Request request) override;
  Request begin(const Execution& stream, std::vector<ConstSpan> send, std::vector<Span> receive,
                const Channel& channel) override;
  void exchange(const std::vector<ConstSpan>& send, const std::vector<Span>& receive,
                const Channel& channel);
  void swap_chunk(ConstSpan send, int to, Span receive, int from);
  void swap_reachable(ConstSpan send, int to, Span receive, int from);

  const bool polls_;  // yields between polls; required where threads take turns
  std::atomic<bool> abandoned_ = false;
  std::optional<Staging> staging_;
  std::optional<Worker> worker_;
};

}  // namespace kzero::comm
