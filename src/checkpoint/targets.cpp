#include "checkpoint/targets.hpp"

#include <algorithm>

#include "checkpoint/parameter_hash.hpp"

namespace kzero::checkpoint {

namespace {

/// Returns whether all arrays have room. An array that is not wanted has no hash; read() refuses
/// one of another size.
bool wants_all(const StateShard& shard, const param::StateArrays& arrays) {
  const Index elements = elements_of(shard.ranges);
  return has_arrays(shard, arrays) &&
         std::ranges::all_of(shard.arrays, [&](const StateValues& array) {
           return std::ssize(array.values) == elements;
         });
}

}  // namespace

Targets::Targets(std::span<const StateShard> wanted, const Manifest& manifest) {
  const Positions positions = positions_of(manifest.parameters);
  for (const StateShard& shard : wanted) {
    const auto found = positions.find(shard.parameter);
    if (found == positions.end() || !wants_all(shard, manifest.state_arrays)) continue;
    by_parameter_.emplace(found->second, Target{compact(shard.ranges), &shard});
  }
}

const StateShard* Targets::take(const StoredShard& stored) {
  const auto [begin, end] = by_parameter_.equal_range(stored.parameter);
  for (auto target = begin; target != end; ++target) {
    if (target->second.runs != stored.runs) continue;
    const StateShard* shard = target->second.shard;
    by_parameter_.erase(target);
    return shard;
  }
  return nullptr;
}

}  // namespace kzero::checkpoint
