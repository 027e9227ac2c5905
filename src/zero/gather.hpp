// The all-gather of a flat unit, of which every rank has its piece.
#pragma once

#include "comm/communicator.hpp"

namespace kzero::zero {

/// Elements [at, at + count) of every rank's piece.
struct Slice {
  Index at = 0;
  Index count = 0;
};

/// Begins to bring the ranks' slices to their places in `unit` [ranks * piece]. `mine` is this
/// rank's piece, in the unit or elsewhere; its own place in the unit is left alone. Collective.
template <class T>
comm::Ticket begin_gather(comm::Communicator& comm, T* unit, Index piece, const Slice& slice,
                          const T* mine, comm::Purpose purpose) {
  std::vector<comm::Span> receive;
  receive.reserve(static_cast<std::size_t>(comm.size()));
  for (int r = 0; r < comm.size(); ++r)
    receive.push_back(comm::Span::of(unit + r * piece + slice.at, slice.count));
  return comm.begin_all_gather(comm::ConstSpan::of(mine + slice.at, slice.count),
                               std::move(receive), purpose);
}

}  // namespace kzero::zero
