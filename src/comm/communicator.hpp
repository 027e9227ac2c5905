// Collectives on device data over one group of ranks. Callers give typed spans with counts in
// elements; the backend moves bytes and enters every element it sends in the traffic ledger.
#pragma once

#include <memory>
#include <span>

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

/// Every function is collective over the group: all its ranks must call it with matching counts.
/// Data sent has been computed (the caller fences); data received is ready on return. Spans never
/// overlap.
class Communicator {
 public:
  virtual ~Communicator() = default;

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }

  /// send[r] goes to rank r, receive[r] comes from rank r; the own entries are ignored.
  virtual void all_to_all(std::span<const ConstSpan> send, std::span<const Span> receive,
                          Operation operation, Purpose purpose) = 0;

  /// `mine` goes to every rank, receive[r] comes from rank r; the own entry is ignored.
  void all_gather(ConstSpan mine, std::span<const Span> receive, Purpose purpose);

  /// The root's data on every rank.
  virtual void broadcast(Span data, int root, Purpose purpose) = 0;

 protected:
  Communicator(const grid::Group& group, Traffic& traffic) : group_(group), traffic_(traffic) {}

  const grid::Group& group_;
  Traffic& traffic_;
};

/// `name` is run.communicator; group and traffic must outlive what is made.
std::unique_ptr<Communicator> make_communicator(const std::string& name, const grid::Group& group,
                                                Traffic& traffic);

}  // namespace kzero::comm
