#include "zero/parameter_store.hpp"

#include "comm/gather.hpp"
#include "kernels/initialize.hpp"
#include "zero/clear_units.hpp"

namespace kzero::zero {

namespace {

constexpr auto category = memory::Category::parameters;

template <class T>
FlatBuffer<T> held_of(memory::Arenas& arenas, const param::FlatLayout& layout, const Stage& stage) {
  if (stage.shared) return FlatBuffer<T>::shared(arenas, category, layout, stage.copies);
  return {arenas, category, layout, stage.parameters, stage.copies};
}

template <class T>
void zero(const tensor::Execution& exec, T* data, Index count) {
  if (count > 0) kernels::fill<T>(exec, {data, static_cast<std::size_t>(count)}, 0);
}

}  // namespace

template <class T>
ParameterStore<T>::ParameterStore(memory::Arenas& arenas, const param::FlatLayout& layout,
                                  const Stage& stage, Index gathered, Index rank)
    : layout_(&layout),
      copies_{stage.copies, layout.ranks() / stage.copies},
      nodes_{layout.ranks() / stage.unit_ranks, stage.unit_ranks},
      rank_(rank),
      memory_(stage.shared ? arenas.shared() : nullptr),
      held_(held_of<T>(arenas, layout, stage)),
      units_(layout.units().size()),
      arrivals_(layout.units().size()) {
  if (stage.unit_ranks > 1) {
    gathered_ = arenas.take_shared<T>(category, gathered / stage.unit_ranks, stage.unit_ranks);
  } else if (stage.gathers_parameters()) {
    gathered_ = arenas.take<T>(category, gathered);
  } else {
    units_.assign(held_.units().begin(), held_.units().end());
  }
}

template <class T>
void ParameterStore<T>::clear(const tensor::Execution& exec) {
  if (memory_ == nullptr) {
    clear_units(exec, held_.units(), held_.data() + held_.elements());
    return;
  }
  for (Index u = 0; u < std::ssize(units_); ++u)
    zero(exec, part(u), copies_.nodes * layout_->unit(u).shard);
}

template <class T>
void ParameterStore<T>::before(const ScheduleStep& step, const tensor::Execution& exec,
                               comm::Communicator& comm) {
  for (const BufferOffset& place : step.gathers) {
    T* unit = gathered_ + place.offset;
    wait_for(place.unit, exec, comm);  // this rank's shard may still receive its update
    arrivals_[place.unit] = gather(place.unit, unit, exec, comm);
    units_[place.unit] = unit;
  }
  for (const Index u : step.needs) wait_for(u, exec, comm);
}

template <class T>
void ParameterStore<T>::wait_for(Index u, const tensor::Execution& exec, comm::Communicator& comm) {
  if (arrivals_[u] == 0) return;
  comm.wait(exec, arrivals_[u]);
  arrivals_[u] = 0;
}

template <class T>
void ParameterStore<T>::finish(const tensor::Execution& exec, comm::Communicator& comm) {
  for (Index u = 0; u < std::ssize(arrivals_); ++u) wait_for(u, exec, comm);
}

template <class T>
void ParameterStore<T>::finish_update(const tensor::Execution& exec, comm::Communicator& comm) {
  if (memory_ == nullptr) return;
  finish(exec, comm);
  exec.fence("kzero::zero::parameters_written");
  memory_->meet();
}

template <class T>
T* ParameterStore<T>::part(Index u) const {
  const Index before = memory_ != nullptr ? copies_.place_of(rank_) * copies_.nodes : 0;
  return held_.unit(u) + before * layout_->unit(u).shard;
}

template <class T>
void ParameterStore<T>::after(const ScheduleStep& step) {
  for (const Index u : step.releases) units_[u] = nullptr;
}

template <class T>
void ParameterStore<T>::all_gather_updated(Index u, const tensor::Execution& exec,
                                           comm::Communicator& comm) {
  const Index shard = layout_->unit(u).shard;
  arrivals_[u] = copies_.nodes == 1 ? gather(u, held_.unit(u), exec, comm)
                                    : comm.begin_gather_across_nodes(
                                          exec, comm::ConstSpan::of(owned(u), shard),
                                          comm::spans(part(u), copies_.nodes, shard, {0, shard}),
                                          comm::Purpose::parameters);
}

template <class T>
comm::Request ParameterStore<T>::gather(Index u, T* unit, const tensor::Execution& exec,
                                        comm::Communicator& comm) const {
  constexpr auto purpose = comm::Purpose::parameters;
  const Index shard = layout_->unit(u).shard;
  if (nodes_.node_ranks > 1) {
    T* const mine = unit + nodes_.rank_at(nodes_.place_of(rank_), 0) * shard;
    return comm.begin_gather_for_node(exec, comm::ConstSpan::of(owned(u), shard),
                                      comm::spans(mine, nodes_.nodes, shard, {0, shard}), purpose);
  }
  if (copies_.nodes == 1)
    return comm::begin_gather<T>(exec, comm, unit, shard, {0, shard}, owned(u), purpose);
  const Index held = copies_.nodes * shard;
  return comm.begin_gather_in_node(exec, comm::ConstSpan::of(part(u), held),
                                   comm::spans(unit, copies_.node_ranks, held, {0, held}), purpose);
}

#define KZERO_INSTANTIATE(T) template class ParameterStore<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::zero
