// Collectives over NCCL or, in HIP builds, RCCL, one rank per GPU. Each kind of collective has its
// own stream (with RCCL all share one), ordered with the callers' streams by events, so that the
// host never waits.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "base/wait.hpp"
#include "comm/communicator.hpp"
#include "runtime/event.hpp"
#include "runtime/stream_timer.hpp"

struct ncclComm;

namespace kzero::comm {

class NcclCommunicator : public Communicator {
 public:
  /// Collective over the group. Throws Error(usage) if two of its ranks share a GPU, Error(other)
  /// if NCCL is too old or cannot connect them.
  NcclCommunicator(const grid::Group& group, Traffic& traffic);
  /// Destroys the communicators, which waits for the other ranks. If something in flight has not
  /// arrived, or if an exception ends the object's life, aborts all communicators instead: an abort
  /// waits for no rank, and the other ranks may not know of the error.
  ~NcclCommunicator() override;

  bool waits_on_device() const override { return true; }
  void wait_for(const Execution& stream, const runtime::Event& point) override;
  double take_device_wait() override { return standstill_.take_seconds(); }

 private:
  /// An enqueued collective, and its entry for the watchdog until it has arrived.
  struct Flight {
    Request request;
    runtime::Event arrived;
    std::unique_ptr<Waiting> noted;
  };

  static Execution lane_stream();

  /// Ends a communicator without waiting for other ranks.
  struct Abort {
    void operator()(ncclComm* handle) const;
  };

  /// A stream of collectives. A NCCL communicator runs collectives one after the other, so gathers
  /// that run ahead and reductions each have their own lane.
  struct Lane {
    Execution stream = lane_stream();
    runtime::Event ready;
    std::deque<Flight> flights;
    std::unique_ptr<ncclComm, Abort> handle;  // is destroyed before its stream
  };

  void complete(const Execution& stream, Request request) override;
  Request begin(const Execution& stream, std::vector<ConstSpan> send, std::vector<Span> receive,
                const Channel& channel) override;
  Request gather(const Execution& stream, ConstSpan mine, std::vector<Span> receive,
                 const Channel& channel) override;
  Request library_sum(const Execution& stream, ConstSpan all, Span own,
                      const Channel& channel) override;

  static constexpr Request lanes = 2;
  static Request lane_of(Operation operation) { return operation == Operation::reduce_scatter; }

  /// Calls enqueue(lane), ordered after the work on `stream`. While profiling, blocks until the
  /// message has arrived so that its duration can be recorded; `work` is stored with it.
  template <class F>
  Request fly(const Execution& stream, const Channel& channel, const SpanWork& work,
              const F& enqueue);
  /// Calls wait(), which makes `stream` wait, and measures the wait if it delays a step.
  template <class F>
  void measured(const Execution& stream, const F& wait);
  static bool has_arrived(const Flight& flight) noexcept;
  void watch(const std::stop_token& stop);
  void look_at(Lane& lane);
  void fail(Wait wait, const std::string& problem);

  std::array<Lane, lanes> lanes_;
  Request begun_ = 0;
  std::mutex mutex_;  // guards flights, which the watching thread removes
  std::vector<runtime::Event> spare_events_;
  runtime::StreamTimer standstill_;  // time for which the default stream stood still
  std::atomic<bool> failed_ = false;
  const int exceptions_ = std::uncaught_exceptions();  // at construction
  std::jthread watcher_;
};

}  // namespace kzero::comm
