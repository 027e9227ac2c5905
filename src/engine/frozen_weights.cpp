#include "engine/frozen_weights.hpp"

#include <algorithm>
#include <vector>

#include "checkpoint/format/parameter_hash.hpp"
#include "engine/initial_weights.hpp"
#include "grid/agreement.hpp"
#include "kernels/initialize.hpp"

namespace kzero::engine {

namespace {

using HostVector = Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;

constexpr Index chunk_elements = Index{1} << 20;

/// Memory for a chunk of fp32 values on the host and where kernels run.
struct Chunk {
  std::vector<float> host;
  Kokkos::View<float*, tensor::Execution::memory_space> values;

  Chunk() : host(chunk_elements), values("kzero::engine::frozen_chunk", chunk_elements) {}
};

/// The hash of a part's values, which are in `values`.
std::uint64_t hash_of(const param::ParamSpec& p, Index number, const param::Part& part,
                      std::span<float> values) {
  checkpoint::StateShard shard{p.name, {}, {{param::master_weights, values}}};
  p.split.for_each_run(part.in_param, part.count, [&](Index, Index begin, Index count) {
    shard.ranges.push_back({begin, count});
  });
  return checkpoint::hash_of(shard, number);
}

}  // namespace

template <class T>
bool FrozenWeights<T>::empty() const {
  return std::ranges::all_of(blueprint_.table, &param::UnitSpec::trains);
}

/// Sets this rank's shards. Returns its summand of the hash, in which each element counts on one
/// rank.
template <class T>
std::uint64_t FrozenWeights<T>::set_own(const tensor::Execution& exec,
                                        const zero::ParameterStore<T>& parameters,
                                        const InitialValues& values) const {
  Chunk chunk;
  std::uint64_t hash = 0;
  const auto set_part = [&](const param::ParamSpec& p, Index number, const param::Part& part,
                            T* to) {
    const auto count = static_cast<std::size_t>(part.count);
    const tensor::Vector<float> drawn(chunk.values.data(), count);
    const std::span<float> on_host(chunk.host.data(), count);
    if (values) {
      p.split.for_each_run(part.in_param, part.count, [&](Index held, Index begin, Index length) {
        values(p, {begin, length},
               on_host.subspan(static_cast<std::size_t>(held - part.in_param),
                               static_cast<std::size_t>(length)));
      });
      Kokkos::deep_copy(exec, drawn, HostVector(on_host.data(), count));
    } else {
      draw_initial(exec, seed_, number, p, part.in_param, drawn);
      Kokkos::deep_copy(exec, HostVector(on_host.data(), count), drawn);
    }
    kernels::round_to<T>(exec, tensor::Vector<const float>(drawn), tensor::Vector<T>(to, count));
    exec.fence("kzero::engine::frozen_part_set");
    if (p.split.is_owned_by(blueprint_.tensor.rank)) hash += hash_of(p, number, part, on_host);
  };
  Index first_number = 0;
  for (Index u = 0; u < std::ssize(blueprint_.table); ++u) {
    const param::UnitSpec& unit = blueprint_.table[u];
    const param::UnitLayout& layout = blueprint_.layout.unit(u);
    const zero::Range own = zero::held(zero::Placement::partitioned, layout, grid_.data().rank());
    T* const shard = parameters.share(u, zero::Placement::partitioned);
    for (Index at = own.begin; at < own.end && !unit.trains; at += chunk_elements) {
      const Index end = std::min(at + chunk_elements, own.end);
      for (const param::Part& part : param::parts(unit, layout, at, end))
        set_part(unit.params[part.param], first_number + part.param, part,
                 shard + part.in_unit - own.begin);
    }
    first_number += std::ssize(unit.params);
  }
  return hash;
}

template <class T>
std::uint64_t FrozenWeights<T>::initialise(const tensor::Execution& exec,
                                           zero::ParameterStore<T>& parameters,
                                           comm::Communicator& data,
                                           const InitialValues& values) const {
  if (empty()) return 0;
  std::vector<std::uint64_t> hash(1);
  grid::collectively(grid_.world(), [&] { hash.front() = set_own(exec, parameters, values); });
  grid_.world().sum(hash);
  // Gathers the shards on ranks that keep more than their own.
  const zero::Stage& stage = blueprint_.stage;
  const bool keeps_all = stage.parameters == zero::Placement::replicated && data.size() > 1;
  for (Index u = 0; u < std::ssize(blueprint_.table) && (keeps_all || stage.copies > 1); ++u) {
    if (!blueprint_.table[u].trains) parameters.all_gather_updated(u, exec, data);
  }
  parameters.finish(exec, data);  // only one thread at a time may call MPI
  return hash.front();
}

#define KZERO_INSTANTIATE(T) template class FrozenWeights<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::engine
