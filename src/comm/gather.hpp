// All-gather of an array of equal shards, one per rank.
#pragma once

#include "comm/communicator.hpp"

namespace kzero::comm {

/// Elements [at, at + count) of every rank's shard.
struct Slice {
  Index at = 0;
  Index count = 0;
};

/// Returns the places of `ranks` slices in an array of shards, rank after rank.
template <class T>
std::vector<Span> spans(T* all, Index ranks, Index shard, const Slice& slice) {
  std::vector<Span> places;
  places.reserve(static_cast<std::size_t>(ranks));
  for (Index r = 0; r < ranks; ++r)
    places.push_back(Span::of(all + r * shard + slice.at, slice.count));
  return places;
}

/// Begins to gather the ranks' slices to their offsets in `all` [ranks * shard]. `mine` is this
/// rank's shard, in `all` or elsewhere. Collective.
template <class T>
Request begin_gather(const Execution& stream, Communicator& comm, T* all, Index shard,
                     const Slice& slice, const T* mine, Purpose purpose) {
  return comm.begin_all_gather(stream, ConstSpan::of(mine + slice.at, slice.count),
                               spans(all, comm.size(), shard, slice), purpose);
}

}  // namespace kzero::comm
