#include "engine/state_shards.hpp"

#include "runtime/pinned_copy.hpp"

namespace kzero::engine {

namespace {

using HostVector = Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;

HostVector host_vector(std::span<float> values) { return {values.data(), values.size()}; }

/// Returns the ranges of the full parameter that a part covers.
std::vector<checkpoint::Range> ranges_of(const param::Split& split, const param::Part& part) {
  std::vector<checkpoint::Range> ranges;
  split.for_each_run(part.in_param, part.count, [&](Index, Index begin, Index count) {
    ranges.push_back({begin, count});
  });
  return ranges;
}

checkpoint::StateShard shard_of(const UnitState& unit, const param::Part& part,
                                const param::StateArrays& arrays) {
  const param::ParamSpec& p = unit.spec->params[part.param];
  const optim::State state = unit.state + (part.in_unit - unit.held.begin);
  checkpoint::StateShard shard{p.name, ranges_of(p.split, part)};
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::size_t count = arrays[i].extends_to(p) ? static_cast<std::size_t>(part.count) : 0;
    shard.arrays.push_back({arrays[i].name, {state[i], count}});
  }
  return shard;
}

}  // namespace

std::vector<checkpoint::StateShard> state_shards(const std::vector<UnitState>& units,
                                                 const ShardChoice& choice,
                                                 const param::StateArrays& arrays,
                                                 checkpoint::Staging* staging) {
  std::vector<checkpoint::StateShard> shards;
  for (const UnitState& unit : units) {
    const zero::Range range = zero::held(choice.placement, *unit.layout, choice.rank);
    for (const param::Part& part : param::parts(*unit.spec, *unit.layout, range.begin, range.end)) {
      const param::ParamSpec& p = unit.spec->params[part.param];
      if (choice.owner && !p.split.is_owned_by(*choice.owner)) continue;
      shards.push_back(shard_of(unit, part, arrays));
      shards.back().staging = staging;
    }
  }
  return shards;
}

void copy_states(const tensor::Execution& exec, std::vector<checkpoint::StateShard>& shards,
                 std::span<float> to) {
  for (checkpoint::StateShard& shard : shards) {
    for (checkpoint::StateValues& array : shard.arrays) {
      const std::span<float> copy = to.first(array.values.size());
      if (shard.staging == nullptr) {
        Kokkos::deep_copy(host_vector(copy), host_vector(array.values));
      } else {
        runtime::copy_to_host(exec, array.values.data(), copy.data(), std::ssize(copy));
      }
      array.values = copy;
      to = to.subspan(copy.size());
    }
    shard.staging = nullptr;
  }
  exec.fence("kzero::engine::states_copied");
}

}  // namespace kzero::engine
