// Collectives on device data over one group of ranks. Callers give typed spans with counts in
// elements; the backend moves bytes and enters every element it sends in the traffic ledger.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/float16.hpp"
#include "base/types.hpp"
#include "comm/traffic.hpp"
#include "deck/config.hpp"
#include "grid/group.hpp"
#include "runtime/execution.hpp"

namespace kzero::comm {

using deck::CommunicatorKind;
using runtime::Execution;

/// A contiguous range to receive into.
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

/// A contiguous range to send from.
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

/// Stands for an exchange that was begun; 0 for one that had nothing to do.
using Request = std::uint64_t;

/// Exchanges take their place in a stream of the device. What the stream holds when one begins
/// computes what is sent and has done with what is received into; what is enqueued after wait()
/// sees what was received and may overwrite what was sent. In between neither is touched. Spans
/// never overlap.
///
/// Every function but wait() is collective over the group: all its ranks must call it with matching
/// counts, in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  Traffic& traffic() { return traffic_; }

  /// send[r] goes to rank r, receive[r] comes from rank r; the own entries are ignored. Counts the
  /// traffic at once; whether data moves before wait() is the backend's affair.
  Request begin_all_to_all(const Execution& stream, std::vector<ConstSpan> send,
                           std::vector<Span> receive, Operation operation, Purpose purpose);

  /// `mine` goes to every rank, receive[r] comes from rank r: the own one is filled too, if mine
  /// lies elsewhere. `operation` is what the traffic is counted as.
  Request begin_all_gather(const Execution& stream, ConstSpan mine, std::vector<Span> receive,
                           Purpose purpose, Operation operation = Operation::all_gather);

  /// own = the ranks' sum of their `all` [size() * own], this rank's part, in the order and the
  /// precision that the library takes; own may be that part of all. Throws Error(usage) where the
  /// backend has no such sum.
  Request begin_library_sum(const Execution& stream, ConstSpan all, Span own, Purpose purpose);

  /// Orders what comes after on `stream` behind the exchange and all of its operation begun before
  /// it. Throws what they met.
  virtual void wait(const Execution& stream, Request request) = 0;

  /// Whether wait() returns at once, so that work can be enqueued behind an exchange under way.
  virtual bool waits_on_device() const { return false; }

  /// begin_... and wait.
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

  /// `channel` says what is exchanged. Only for groups of two and more.
  virtual Request begin(const Execution& stream, std::vector<ConstSpan> send,
                        std::vector<Span> receive, const Channel& channel) = 0;

  /// begin() of the same to all, with the own place filled.
  virtual Request gather(const Execution& stream, ConstSpan mine, std::vector<Span> receive,
                         const Channel& channel);

  /// That of a backend without sums throws.
  virtual Request library_sum(const Execution& stream, ConstSpan all, Span own,
                              const Channel& channel);

  const grid::Group& group_;
  Traffic& traffic_;
};

/// Whether exchanges move data while the caller computes, or inside begin. One communicator of a
/// rank may overlap; while its exchanges are under way no MPI call may be made on the rank but by
/// communicators made `beside` it, whose calls take turns with its own.
enum class Overlap { no, beside, yes };

/// Throws Error(usage) if this build does not have the communicator, or if `library_sums` asks for
/// sums that the communicator's library does not have.
void require_communicator(CommunicatorKind kind, bool library_sums);

/// Makes run.communicator for a group; group and traffic must outlive it. Collective over the
/// group. Throws Error(usage) if this build does not have it.
std::unique_ptr<Communicator> make_communicator(CommunicatorKind kind, Overlap overlap,
                                                const grid::Group& group, Traffic& traffic);

/// For backends over MPI, which add in rank order.
[[noreturn]] void refuse_library_sums();

/// Whether the communicator moves data without a core of the host's.
bool moves_by_itself(CommunicatorKind kind);

}  // namespace kzero::comm
