// Collectives on device data over one group of ranks. Callers pass typed spans with counts in
// elements; the backend moves bytes and enters every element it sends in the traffic ledger.
#pragma once

#include <cstdint>
#include <vector>

#include "base/float16.hpp"
#include "base/timeline.hpp"
#include "base/types.hpp"
#include "comm/traffic.hpp"
#include "grid/group.hpp"
#include "runtime/event.hpp"
#include "runtime/execution.hpp"

namespace kzero::comm {

using runtime::Execution;

/// A contiguous receive buffer.
struct Span {
  void* data = nullptr;
  Index elements = 0;
  Dtype dtype = Dtype::fp32;

  template <class T>
  static Span of(T* data, Index elements) {
    return {data, elements, dtype_of<T>};
  }
  Index bytes() const { return elements * bytes_of(dtype); }
};

/// A contiguous send buffer.
struct ConstSpan {
  const void* data = nullptr;
  Index elements = 0;
  Dtype dtype = Dtype::fp32;

  template <class T>
  static ConstSpan of(const T* data, Index elements) {
    return {data, elements, dtype_of<T>};
  }
  Index bytes() const { return elements * bytes_of(dtype); }
};

/// The name of a channel's messages in time lines.
inline SpanName message_name(const Channel& channel) {
  return SpanName("{}: {} of {}", channel.group, name_of(channel.operation),
                  name_of(channel.purpose));
}

/// Handle of a collective that was begun; 0 if there was nothing to do.
using Request = std::uint64_t;

/// Collectives are ordered on a device stream. Work that is on the stream before a collective
/// begins may compute the data to send, and has finished with the receive buffers. Work enqueued
/// after wait() sees the received data and may overwrite the send buffers. Between the two calls,
/// neither buffer may be touched. Spans never overlap.
///
/// Every function except wait() is collective over the group: all ranks must call it with matching
/// counts, in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  Traffic& traffic() { return traffic_; }

  /// Sends send[r] to rank r and receives receive[r] from rank r; the rank's own entries are
  /// ignored. Counts the traffic at once; the back end decides whether data moves before wait().
  Request begin_all_to_all(const Execution& stream, std::vector<ConstSpan> send,
                           std::vector<Span> receive, Operation operation, Purpose purpose);

  /// Sends `mine` to every rank and receives receive[r] from rank r. The rank's own entry is filled
  /// too, unless it is `mine` itself. The traffic is counted as `operation`.
  Request begin_all_gather(const Execution& stream, ConstSpan mine, std::vector<Span> receive,
                           Purpose purpose, Operation operation = Operation::all_gather);

  /// Sends `mine` to every rank of this rank's node, and receives receive[p] from the one with
  /// place p. The rank's own entry is filled too. Nodes have equally many ranks of the group.
  Request begin_gather_in_node(const Execution& stream, ConstSpan mine,
                               const std::vector<Span>& receive, Purpose purpose);

  /// Sends `mine` to the ranks with the same place on all nodes, and receives receive[n] from the
  /// one on node n. Otherwise as begin_gather_in_node().
  Request begin_gather_across_nodes(const Execution& stream, ConstSpan mine,
                                    const std::vector<Span>& receive, Purpose purpose);

  /// As begin_gather_across_nodes(), into memory that the ranks of a node share: receive[n] is in
  /// it, and each of the node's ranks receives a part of the result. Nothing is written before all
  /// of the node's ranks have begun the gather, and wait() returns when all their parts are
  /// complete. Reading must therefore end before the next gather into the same place begins. Throws
  /// Error(other) if the back end shares no memory.
  Request begin_gather_for_node(const Execution& stream, ConstSpan mine,
                                const std::vector<Span>& receive, Purpose purpose);

  /// Reduce-scatters `all` [size() * own] into this rank's `own`, in the library's order and
  /// precision of summation. `own` may be this rank's part of `all`. Throws Error(usage) if the
  /// back end has no reduction of its own.
  Request begin_library_sum(const Execution& stream, ConstSpan all, Span own, Purpose purpose);

  /// Orders later work on `stream` after this collective and all earlier ones of the same
  /// operation. Throws the first error of any of them.
  void wait(const Execution& stream, Request request);

  /// Orders later work on `stream` after a point of another stream that comes after collectives.
  virtual void wait_for(const Execution& stream, const runtime::Event& point) {
    point.wait(stream);
  }

  /// Returns the seconds, since the last call, for which the default stream stood still in steps
  /// because of wait() and wait_for(); waits that have not ended are left out. Returns 0 if these
  /// functions block the host, which counts its waits itself (base/waited.hpp).
  virtual double take_device_wait() { return 0; }

  /// Returns whether wait() returns at once, so that work can be enqueued after a collective in
  /// flight.
  virtual bool waits_on_device() const { return false; }

  /// Begins the collective and waits for it.
  void all_to_all(const Execution& stream, std::vector<ConstSpan> send, std::vector<Span> receive,
                  Operation operation, Purpose purpose) {
    wait(stream, begin_all_to_all(stream, std::move(send), std::move(receive), operation, purpose));
  }
  void all_gather(const Execution& stream, ConstSpan mine, std::vector<Span> receive,
                  Purpose purpose, Operation operation = Operation::all_gather) {
    wait(stream, begin_all_gather(stream, mine, std::move(receive), purpose, operation));
  }

 protected:
  Communicator(const grid::Group& group, Traffic& traffic) : group_(group), traffic_(traffic) {}

  /// Begins point-to-point transfers to and from every other rank, counted under `channel`. Called
  /// only for groups of two or more ranks.
  virtual Request begin(const Execution& stream, std::vector<ConstSpan> send,
                        std::vector<Span> receive, const Channel& channel) = 0;

  /// Begins what begin_gather_for_node() describes: copies `mine` to `place`, sends and receives.
  /// The default, for backends without shared memory, throws.
  virtual Request begin_for_node(const Execution& stream, const ConstSpan& mine, const Span& place,
                                 const std::vector<ConstSpan>& send,
                                 const std::vector<Span>& receive, const Channel& channel);

  /// Implements wait(). Request 0 needs no wait.
  virtual void complete(const Execution& stream, Request request) = 0;

  /// Begins sending `mine` to every rank, and fills the own entry of `receive`.
  virtual Request gather(const Execution& stream, ConstSpan mine, std::vector<Span> receive,
                         const Channel& channel);

  /// Begins the library's reduce-scatter; the default, for backends without one, throws.
  virtual Request library_sum(const Execution& stream, ConstSpan all, Span own,
                              const Channel& channel);

  const grid::Group& group_;
  Traffic& traffic_;

 private:
  void count_gather(const Channel& channel, const ConstSpan& mine);
  Request gather_by_node(const Execution& stream, ConstSpan mine, const std::vector<Span>& receive,
                         const Channel& channel);
  template <class PeerAt>
  Request gather_part(const Execution& stream, const ConstSpan& mine,
                      const std::vector<Span>& receive, Purpose purpose, bool leaves_node,
                      const PeerAt& peer_at);
  template <class PeerAt>
  Request gather_from(const Execution& stream, const ConstSpan& mine,
                      const std::vector<Span>& receive, const Channel& channel,
                      const PeerAt& peer_at);
};

}  // namespace kzero::comm
