// Collectives on device data over one group of ranks. Callers give typed spans with counts in
// elements; the backend moves bytes and enters every element it sends in the traffic ledger.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/float16.hpp"
#include "base/types.hpp"
#include "comm/traffic.hpp"
#include "grid/group.hpp"

namespace kzero::comm {

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

/// Stands for an exchange that was begun. Exchanges end in the order in which they began.
using Ticket = std::uint64_t;

/// Every function but wait() is collective over the group: all its ranks must call it with matching
/// counts, in the same order. Data sent has been computed (the caller fences) and stays as it is,
/// and data received is not touched, until the exchange has ended. Spans never overlap.
class Communicator {
 public:
  virtual ~Communicator() = default;

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  Traffic& traffic() { return traffic_; }

  /// send[r] goes to rank r, receive[r] comes from rank r; the own entries are ignored. Counts the
  /// traffic at once; whether data moves before wait() is the backend's affair.
  Ticket begin_all_to_all(std::vector<ConstSpan> send, std::vector<Span> receive,
                          Operation operation, Purpose purpose);

  /// `mine` goes to every rank, receive[r] comes from rank r; the own entry is ignored.
  Ticket begin_all_gather(ConstSpan mine, std::vector<Span> receive, Purpose purpose);

  /// Returns when the exchange, and all begun before it, have ended. Throws what they met.
  virtual void wait(Ticket ticket) = 0;

  /// begin_all_to_all and wait.
  void all_to_all(std::vector<ConstSpan> send, std::vector<Span> receive, Operation operation,
                  Purpose purpose) {
    wait(begin_all_to_all(std::move(send), std::move(receive), operation, purpose));
  }
  void all_gather(ConstSpan mine, std::vector<Span> receive, Purpose purpose) {
    wait(begin_all_gather(mine, std::move(receive), purpose));
  }

  /// The root's data on every rank.
  virtual void broadcast(Span data, int root, Purpose purpose) = 0;

 protected:
  Communicator(const grid::Group& group, Traffic& traffic) : group_(group), traffic_(traffic) {}

  /// `channel` says what is exchanged.
  virtual Ticket begin(std::vector<ConstSpan> send, std::vector<Span> receive,
                       const Channel& channel) = 0;

  const grid::Group& group_;
  Traffic& traffic_;
};

/// Whether exchanges move data while the caller computes, or inside begin. One communicator of a
/// rank may overlap; while its exchanges are under way no MPI call may be made on the rank but by
/// communicators made `beside` it, whose calls take turns with its own.
enum class Overlap { no, beside, yes };

/// `name` is run.communicator; group and traffic must outlive what is made.
std::unique_ptr<Communicator> make_communicator(const std::string& name, Overlap overlap,
                                                const grid::Group& group, Traffic& traffic);

}  // namespace kzero::comm
