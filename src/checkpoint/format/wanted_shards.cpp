#include "checkpoint/format/wanted_shards.hpp"

#include <algorithm>

#include "checkpoint/format/parameter_hash.hpp"

namespace kzero::checkpoint {

namespace {

/// Returns whether the shard has room for exactly the stored arrays. Otherwise it is not filled
/// here, as its hash could not be compared. read() refuses an array of another size.
bool wants_all(const StateShard& shard, const StoredShard& stored) {
  const Index elements = elements_of(shard.ranges);
  for (std::size_t a = 0; a < stored.offsets.size(); ++a) {
    const Index wanted = std::ssize(shard.arrays[a].values);
    if (wanted != (stored.offsets[a] == no_offset ? 0 : elements)) return false;
  }
  return true;
}

}  // namespace

WantedShards::WantedShards(std::span<const StateShard> wanted, const Manifest& manifest) {
  const Positions positions = positions_of(manifest.parameters);
  for (const StateShard& shard : wanted) {
    const auto found = positions.find(shard.parameter);
    if (found == positions.end() || !has_arrays(shard, manifest.state_arrays)) continue;
    by_parameter_.emplace(found->second, Wanted{compact(shard.ranges), &shard});
  }
}

const StateShard* WantedShards::take(const StoredShard& stored) {
  const auto [begin, end] = by_parameter_.equal_range(stored.parameter);
  for (auto target = begin; target != end; ++target) {
    if (target->second.runs != stored.runs || !wants_all(*target->second.shard, stored)) continue;
    const StateShard* shard = target->second.shard;
    by_parameter_.erase(target);
    return shard;
  }
  return nullptr;
}

}  // namespace kzero::checkpoint
