// The all-gather of an array of equal pieces, of which every rank has its own.
#pragma once

#include "comm/communicator.hpp"

namespace kzero::comm {

/// Elements [at, at + count) of every rank's piece.
struct Slice {
  Index at = 0;
  Index count = 0;
};

/// Begins to bring the ranks' slices to their places in `all` [ranks * piece]. `mine` is this
/// rank's piece, there or elsewhere. Collective.
template <class T>
Ticket begin_gather(const Execution& queue, Communicator& comm, T* all, Index piece,
                    const Slice& slice, const T* mine, Purpose purpose) {
  std::vector<Span> receive;
  receive.reserve(static_cast<std::size_t>(comm.size()));
  for (int r = 0; r < comm.size(); ++r)
    receive.push_back(Span::of(all + r * piece + slice.at, slice.count));
  return comm.begin_all_gather(queue, ConstSpan::of(mine + slice.at, slice.count),
                               std::move(receive), purpose);
}

}  // namespace kzero::comm
