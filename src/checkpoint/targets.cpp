#include "checkpoint/targets.hpp"

#include <algorithm>

#include "checkpoint/parameter_hash.hpp"

namespace kzero::checkpoint {

namespace {

/// Where an array is not wanted there is no hash; one of another size is read()'s to refuse.
bool has_room(const StateShard& shard, Index elements) {
  return std::ranges::all_of(
      shard.states(), [&](const std::span<float> state) { return std::ssize(state) == elements; });
}

}  // namespace

Targets::Targets(std::span<const StateShard> wanted, const std::vector<Parameter>& parameters) {
  const Positions positions = positions_of(parameters);
  for (const StateShard& shard : wanted) {
    const auto found = positions.find(shard.parameter);
    if (found == positions.end() || !has_room(shard, elements_of(shard.ranges))) continue;
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
