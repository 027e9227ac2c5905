#include "infer/parameters.hpp"

#include <algorithm>

#include "grid/agreement.hpp"
#include "kernels/initialize.hpp"

namespace kzero::infer {

namespace {

constexpr Index max_staged = Index{4} << 20;  // elements

Index largest_share(const param::FlatLayout& layout) {
  Index largest = 1;
  for (const param::UnitLayout& unit : layout.units()) largest = std::max(largest, unit.shard);
  return largest;
}

}  // namespace

ForwardBlueprint::ForwardBlueprint(const deck::Config& config, Index data_ranks,
                                   const model::TensorRank& rank)
    : ModelBlueprint(config, data_ranks, rank, engine::stage_of(config, data_ranks)),
      schedule(definition->validation_trace(), layout, {.stage = stage}) {}

template <class T>
Parameters<T>::Parameters(memory::Arenas& arenas, const ForwardBlueprint& blueprint,
                          Index data_rank)
    : blueprint_(&blueprint),
      store_(arenas, blueprint.layout, blueprint.stage, blueprint.schedule.gathered_elements(),
             data_rank),
      chunk_(std::min(max_staged, largest_share(blueprint.layout))),
      staging_(arenas.take<float>(memory::Category::io, chunk_)) {}

template <class T>
void Parameters<T>::load(const tensor::Execution& exec, const Values& values,
                         engine::Machinery& machinery) {
  const comm::Communicator& data = *machinery.data;
  store_.clear(exec);  // collectives send padding, too
  const auto units = static_cast<Index>(blueprint_->table.size());
  grid::collectively(machinery.grid.world(), [&] {
    for (Index u = 0; u < units; ++u) read_unit(u, exec, values, data.rank());
  });
  store_.finish_update(exec, *machinery.data);
  if (blueprint_->stage.parameters == zero::Placement::partitioned) return;
  for (Index u = 0; u < units; ++u) store_.all_gather_updated(u, exec, *machinery.data);
  store_.finish(exec, *machinery.data);
}

/// Reads this data rank's share of a unit.
template <class T>
void Parameters<T>::read_unit(Index u, const tensor::Execution& exec, const Values& values,
                              Index data_rank) {
  const param::UnitSpec& spec = blueprint_->table[u];
  const param::UnitLayout& layout = blueprint_->layout.unit(u);
  const zero::Range share = zero::held(zero::Placement::partitioned, layout, data_rank);
  T* const own = store_.share(u, zero::Placement::partitioned);
  std::vector<float> host(static_cast<std::size_t>(chunk_));
  for (const param::Part& part : param::parts(spec, layout, share.begin, share.end)) {
    const param::ParamSpec& p = spec.params[part.param];
    for (Index done = 0; done < part.count; done += chunk_) {
      const Index first = part.in_param + done;
      const auto count = static_cast<std::size_t>(std::min(chunk_, part.count - done));
      std::vector<checkpoint::Range> ranges;
      p.split.for_each_run(first, static_cast<Index>(count), [&](Index, Index begin, Index run) {
        ranges.push_back({begin, run});
      });
      values(p, ranges, std::span(host).first(count));
      const tensor::Vector<float> staging(staging_, count);
      const Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> read(host.data(),
                                                                                  count);
      Kokkos::deep_copy(exec, staging, read);
      kernels::round_to<T>(exec, staging, {own + part.in_unit + done - share.begin, count});
      exec.fence("kzero::infer::parameter_read");
    }
  }
}

#define KZERO_INSTANTIATE(T) template class Parameters<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::infer
