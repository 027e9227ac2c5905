// Collectives as point-to-point messages over MPI, in chunks. Messages may have any size, the
// library needs no temporaries, and the order of messages does not depend on the library's choice
// of algorithm. Device data that MPI cannot read passes through pinned host memory.
#pragma once

#include <mpi.h>

#include <atomic>
#include <optional>
#include <span>

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
  Request begin_for_node(const Execution& stream, const ConstSpan& mine, const Span& place,
                         const std::vector<ConstSpan>& send, const std::vector<Span>& receive,
                         const Channel& channel) override;
  template <class Task>
  Request start(const Execution& stream, Task task);
  void exchange(const std::vector<ConstSpan>& send, const std::vector<Span>& receive,
                const Channel& channel);
  void post(Span chunk, int from, MPI_Request& request);
  void post(ConstSpan chunk, int to, MPI_Request& request);
  MPI_Request begin_meeting(const grid::Group& node) const;
  void end_meeting(MPI_Request meeting, const Channel& channel) const;
  void wait_for_some(std::span<MPI_Request> requests) const;

  const bool polls_;    // yields between polls; required where threads take turns
  const Index window_;  // chunks in flight in each direction; 1 with staging, which has one buffer
  std::atomic<bool> abandoned_ = false;
  /// The ranks of this rank's node, if they may share memory: for the meetings before gathers that
  /// they make together, and after. Collectives of a group have one order, which two threads that
  /// begin them do not keep.
  std::optional<grid::Group> before_, after_;
  std::optional<Staging> staging_;
  std::optional<Worker> worker_;
};

}  // namespace kzero::comm
