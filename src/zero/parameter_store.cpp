#include "zero/parameter_store.hpp"

#include "comm/gather.hpp"

namespace kzero::zero {

template <class T>
ParameterStore<T>::ParameterStore(memory::Arenas& arenas, const param::FlatLayout& layout,
                                  const Stage& stage, Index gathered, Index rank)
    : layout_(&layout),
      copies_{stage.copies, layout.ranks() / stage.copies},
      rank_(rank),
      held_(arenas, memory::Category::parameters, layout, stage.parameters, stage.copies),
      units_(layout.units().size()),
      arrivals_(layout.units().size()) {
  if (stage.parameters == Placement::replicated) {
    units_.assign(held_.units().begin(), held_.units().end());
  } else {
    gathered_ = arenas.take<T>(memory::Category::parameters, gathered);
  }
}

template <class T>
void ParameterStore<T>::before(const ScheduleStep& step, const tensor::Execution& exec,
                               comm::Communicator& comm) {
  for (const BufferOffset& place : step.gathers) {
    T* unit = gathered_ + place.offset;
    wait_for(place.unit, exec, comm);  // for updates of what is sent
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
void ParameterStore<T>::after(const ScheduleStep& step) {
  for (const Index u : step.releases) units_[u] = nullptr;
}

template <class T>
void ParameterStore<T>::all_gather_updated(Index u, const tensor::Execution& exec,
                                           comm::Communicator& comm) {
  const Index shard = layout_->unit(u).shard;
  T* const held = held_.unit(u);
  arrivals_[u] = copies_.nodes == 1 ? gather(u, held, exec, comm)
                                    : comm.begin_gather_across_nodes(
                                          exec, comm::ConstSpan::of(owned(u), shard),
                                          comm::spans(held, copies_.nodes, shard, {0, shard}),
                                          comm::Purpose::parameters);
}

template <class T>
comm::Request ParameterStore<T>::gather(Index u, T* unit, const tensor::Execution& exec,
                                        comm::Communicator& comm) const {
  constexpr auto purpose = comm::Purpose::parameters;
  const Index shard = layout_->unit(u).shard;
  if (copies_.nodes == 1)
    return comm::begin_gather<T>(exec, comm, unit, shard, {0, shard}, owned(u), purpose);
  const Index part = copies_.nodes * shard;
  return comm.begin_gather_in_node(exec, comm::ConstSpan::of(held_.unit(u), part),
                                   comm::spans(unit, copies_.node_ranks, part, {0, part}), purpose);
}

#define KZERO_INSTANTIATE(T) template class ParameterStore<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::zero
