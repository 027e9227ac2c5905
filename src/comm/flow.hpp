// One direction of an exchange: the chunks that a rank sends to all others, or receives from them,
// in a fixed order and with a limit on those in flight.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>

#include "comm/backends.hpp"
#include "comm/communicator.hpp"

namespace kzero::comm {

enum class Direction { out, in };

/// Chunks are posted and leave the window in one order: rank r sends to rank r + 1 first, which
/// receives from rank r first, then to rank r + 2, and so on. Both ends of a message cut it alike.
template <class S>  // ConstSpan to send, Span to receive
class Flow {
 public:
  struct Chunk {
    S data;
    int rank = -1;  // of the group; the other end
  };

  /// `spans` has an entry for each rank of the group and must outlive the object; the rank's own is
  /// ignored. The chunk in a place of the window uses the request in the same place. `requests` has
  /// max_in_flight entries or fewer, and all are MPI_REQUEST_NULL.
  Flow(std::span<const S> spans, Direction direction, const grid::Group& group,
       std::span<MPI_Request> requests)
      : spans_(spans), direction_(direction), group_(group), requests_(requests) {}

  /// Calls post(chunk, request) for the next chunks until the window is full or none is left.
  template <class Post>
  void fill(const Post& post) {
    const auto window = std::ssize(requests_);
    while (begun_ - ended_ < window && find_next()) {
      const S& all = spans_[partner()];
      const Index bytes = std::min(all.bytes() - at_, chunk_bytes());
      Chunk& chunk = in_flight_[begun_ % window];
      chunk = {part(all, at_, bytes), partner()};
      post(chunk, requests_[begun_ % window]);
      at_ += bytes;
      ++begun_;
    }
  }

  /// Removes the oldest chunks from the window up to the first whose message has not ended, and
  /// calls take(chunk) for each.
  template <class Take>
  void retire(const Take& take) {
    const auto window = std::ssize(requests_);
    for (; begun_ > ended_ && requests_[ended_ % window] == MPI_REQUEST_NULL; ++ended_)
      take(in_flight_[ended_ % window]);
  }

  /// Returns the other end of the oldest message in flight; -1 if there is none.
  int oldest() const {
    return begun_ == ended_ ? -1 : in_flight_[ended_ % std::ssize(requests_)].rank;
  }

 private:
  static S part(const S& all, Index at, Index bytes) {
    using Byte = std::conditional_t<std::is_same_v<S, Span>, std::byte, const std::byte>;
    return {static_cast<Byte*>(all.data) + at, bytes / bytes_of(all.dtype), all.dtype};
  }

  /// Moves to the next rank with anything left to post. Returns false after the last.
  bool find_next() {
    for (; step_ < group_.size(); ++step_, at_ = 0) {
      if (at_ < spans_[partner()].bytes()) return true;
    }
    return false;
  }

  int partner() const {
    const int step = direction_ == Direction::out ? step_ : group_.size() - step_;
    return (group_.rank() + step) % group_.size();
  }

  Index chunk_bytes() const {
    return group_.leaves_node(partner()) ? chunk_between_nodes : chunk_within_node;
  }

  std::span<const S> spans_;
  Direction direction_;
  const grid::Group& group_;
  std::span<MPI_Request> requests_;
  std::array<Chunk, max_in_flight> in_flight_;
  Index begun_ = 0, ended_ = 0;  // chunks so far
  int step_ = 1;                 // the distance to the partner of the next chunk
  Index at_ = 0;                 // bytes of that partner's span that were posted
};

}  // namespace kzero::comm
