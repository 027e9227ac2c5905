#include "train/state_shards.hpp"

namespace kzero::train {

namespace {

using HostVector = Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;

/// The ranges of the whole parameter that a part holds.
std::vector<checkpoint::Range> ranges_of(const param::Split& split, const param::Part& part) {
  std::vector<checkpoint::Range> ranges;
  split.for_each_run(part.in_param, part.count, [&](Index, Index begin, Index count) {
    ranges.push_back({begin, count});
  });
  return ranges;
}

}  // namespace

StateShards::StateShards(const std::vector<UnitState>& units, zero::Placement placement, Index rank,
                         Wanted wanted) {
  for (const UnitState& unit : units) {
    const zero::Range range = zero::held(placement, *unit.layout, rank);
    for (const param::Part& part : param::parts(*unit.spec, *unit.layout, range.begin, range.end)) {
      const param::ParamSpec& p = unit.spec->params[static_cast<std::size_t>(part.param)];
      if (wanted == Wanted::split && p.split.is_full()) continue;
      const Index at = part.in_unit - unit.held.begin;
      shards_.push_back({p.name, ranges_of(p.split, part), view(unit.state.master + at, part.count),
                         view(unit.state.first + at, part.count),
                         view(unit.state.second + at, part.count)});
    }
  }
}

std::span<float> StateShards::view(float* device, Index count) {
  if constexpr (tensor::on_host) {
    return {device, static_cast<std::size_t>(count)};
  } else {
    Copy& copy =
        copies_.emplace_back(Copy{device, std::vector<float>(static_cast<std::size_t>(count))});
    return copy.host;
  }
}

void StateShards::download() {
  for (Copy& copy : copies_) {
    Kokkos::deep_copy(HostVector(copy.host.data(), copy.host.size()),
                      tensor::Vector<float>(copy.device, copy.host.size()));
  }
}

void StateShards::upload() const {
  for (const Copy& copy : copies_) {
    Kokkos::deep_copy(tensor::Vector<float>(copy.device, copy.host.size()),
                      HostVector(const_cast<float*>(copy.host.data()), copy.host.size()));
  }
}

void copy_states(std::vector<checkpoint::StateShard>& shards, float* to) {
  for (checkpoint::StateShard& shard : shards) {
    for (std::span<float>* state : {&shard.master, &shard.first_moment, &shard.second_moment}) {
      Kokkos::deep_copy(HostVector(to, state->size()), HostVector(state->data(), state->size()));
      *state = {to, state->size()};
      to += state->size();
    }
  }
}

}  // namespace kzero::train
