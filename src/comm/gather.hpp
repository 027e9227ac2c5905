// All-gather of an array of equal shards, one per rank.
#pragma once

#include "comm/communicator.hpp"

namespace kzero::comm {

/// Elements [at, at + count) of every rank's shard.
struct Slice {
  Index at = 0;
  Index count = 0;
};

/// Begins to gather the ranks' slices to their offsets in `all` [ranks * shard]. `mine` is this
/// rank's shard, in `all` or elsewhere. Collective.
template <class T>
Request begin_gather(const Execution& stream, Communicator& comm, T* all, Index shard,
                     const Slice& slice, const T* mine, Purpose purpose) {
  std::vector<Span> receive;
  receive.reserve(static_cast<std::size_t>(comm.size()));
  for (int r = 0; r < comm.size(); ++r)
    receive.push_back(Span::of(all + r * shard + slice.at, slice.count));
  return comm.begin_all_gather(stream, ConstSpan::of(mine + slice.at, slice.count),
                               std::move(receive), purpose);
}

}  // namespace kzero::comm
