#include "train/state_shards.hpp"

#include "base/error.hpp"

namespace kzero::train {

namespace {

using HostVector = Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;

HostVector host_vector(std::span<float> values) { return {values.data(), values.size()}; }

/// The ranges of the full parameter that a part covers.
std::vector<checkpoint::Range> ranges_of(const param::Split& split, const param::Part& part) {
  std::vector<checkpoint::Range> ranges;
  split.for_each_run(part.in_param, part.count, [&](Index, Index begin, Index count) {
    ranges.push_back({begin, count});
  });
  return ranges;
}

}  // namespace

StateShards::StateShards(const std::vector<UnitState>& units, const ShardChoice& choice,
                         const param::StateArrays& arrays, const HostAccess& access)
    : in_place_(access.in_place), room_(access.room) {
  for (const UnitState& unit : units) {
    const zero::Range range = zero::held(choice.placement, *unit.layout, choice.rank);
    for (const param::Part& part : param::parts(*unit.spec, *unit.layout, range.begin, range.end)) {
      const param::ParamSpec& p = unit.spec->params[static_cast<std::size_t>(part.param)];
      if (choice.owner && !p.split.is_owned_by(*choice.owner)) continue;
      add(unit, part, arrays);
    }
  }
  if (!room_.empty()) place_copies();
}

/// A shard of one part, whose values are where the host reaches them, or nowhere yet.
void StateShards::add(const UnitState& unit, const param::Part& part,
                      const param::StateArrays& arrays) {
  const param::ParamSpec& p = unit.spec->params[static_cast<std::size_t>(part.param)];
  const optim::State state = unit.state + (part.in_unit - unit.held.begin);
  checkpoint::StateShard& shard =
      shards_.emplace_back(checkpoint::StateShard{p.name, ranges_of(p.split, part), {}});
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    shard.arrays.push_back({arrays[i].name, {}});
    const std::size_t count = arrays[i].extends_to(p) ? static_cast<std::size_t>(part.count) : 0;
    if (in_place_) {
      shard.arrays.back().values = {state[i], count};
    } else {
      const std::size_t at = copies_.empty() ? 0 : copies_.back().at + copies_.back().count;
      copies_.push_back({state[i], at, count});
    }
  }
}

/// Makes the shards views of the copies. Without room that the plan counts it is allocated now:
/// runs without checkpoints never come here.
void StateShards::place_copies() {
  if (copies_.empty()) return;
  const std::size_t elements = copies_.back().at + copies_.back().count;
  if (room_.empty()) {
    own_room_.resize(elements);
    room_ = own_room_;
  }
  KZERO_REQUIRE(elements <= room_.size(), ExitCode::other,
                "internal error: room for {} values of state, {} are needed", room_.size(),
                elements);
  auto copy = copies_.begin();
  for (checkpoint::StateShard& shard : shards_) {
    for (checkpoint::StateValues& array : shard.arrays) array.values = host(*copy++);
  }
}

const std::vector<checkpoint::StateShard>& StateShards::views() {
  if (room_.empty()) place_copies();
  return shards_;
}

void StateShards::download() {
  if (room_.empty()) place_copies();
  for (const Copy& copy : copies_) {
    Kokkos::deep_copy(host_vector(host(copy)), tensor::Vector<float>(copy.device, copy.count));
  }
}

void StateShards::upload() const {
  for (const Copy& copy : copies_) {
    Kokkos::deep_copy(tensor::Vector<float>(copy.device, copy.count), host_vector(host(copy)));
  }
}

void copy_states(std::vector<checkpoint::StateShard>& shards, std::span<float> to) {
  for (checkpoint::StateShard& shard : shards) {
    for (checkpoint::StateValues& array : shard.arrays) {
      const std::span<float> copy = to.first(array.values.size());
      Kokkos::deep_copy(host_vector(copy), host_vector(array.values));
      array.values = copy;
      to = to.subspan(copy.size());
    }
  }
}

}  // namespace kzero::train
