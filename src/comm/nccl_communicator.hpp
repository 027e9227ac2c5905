// Collectives over NCCL, one rank a GPU: each kind of exchange on a stream of its own, ordered with
// the callers' queues by events, so that the host waits for none of them.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "base/wait.hpp"
#include "comm/communicator.hpp"
#include "runtime/event.hpp"

struct ncclComm;

namespace kzero::comm {

class NcclCommunicator : public Communicator {
 public:
  /// Collective over the group. Throws Error(usage) if two of its ranks share a GPU.
  NcclCommunicator(const grid::Group& group, Traffic& traffic);
  /// Ends what is under way: in order if all of it has arrived, else at once.
  ~NcclCommunicator() override;

  void wait(const Execution& queue, Ticket ticket) override;
  bool waits_on_device() const override { return true; }

 private:
  /// An exchange that is enqueued; what is waited for until it has arrived.
  struct Flight {
    Ticket ticket;
    runtime::Event arrived;
    std::unique_ptr<Waiting> noted;
  };

  /// Exchanges that take their turn: a NCCL communicator runs one after the other, so gathers that
  /// run ahead and sums each have their own.
  struct Lane {
    ncclComm* handle = nullptr;
    Execution queue = runtime::make_queue();
    runtime::Event ready;
    std::deque<Flight> flights;
  };

  Ticket begin(const Execution& queue, std::vector<ConstSpan> send, std::vector<Span> receive,
               const Channel& channel) override;
  Ticket gather(const Execution& queue, ConstSpan mine, std::vector<Span> receive,
                const Channel& channel) override;
  Ticket library_sum(const Execution& queue, ConstSpan all, Span own,
                     const Channel& channel) override;

  static constexpr Ticket lanes = 2;
  static Ticket lane_of(Operation operation) { return operation == Operation::reduce_scatter; }

  /// enqueue(lane) behind what `queue` holds.
  template <class F>
  Ticket fly(const Execution& queue, const Channel& channel, const F& enqueue);
  static bool has_arrived(const Flight& flight) noexcept;
  void watch(const std::stop_token& stop);
  void look_at(Lane& lane);

  std::array<Lane, lanes> lanes_;
  Ticket begun_ = 0;
  std::mutex mutex_;  // of flights, which the watching thread takes down
  std::vector<runtime::Event> spare_events_;
  std::atomic<bool> failed_ = false;
  std::jthread watcher_;
};

}  // namespace kzero::comm
