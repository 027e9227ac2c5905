#include "zero/parameter_store.hpp"

#include "comm/gather.hpp"

namespace kzero::zero {

template <class T>
ParameterStore<T>::ParameterStore(memory::Arenas& arenas, const param::FlatLayout& layout,
                                  Placement placement, Index gathered, Index rank)
    : layout_(&layout),
      rank_(rank),
      held_(arenas, memory::Category::parameters, layout, placement),
      units_(layout.units().size()),
      arrivals_(layout.units().size()) {
  if (placement == Placement::replicated) {
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
  arrivals_[u] = gather(u, held_.unit(u), exec, comm);
}

template <class T>
comm::Request ParameterStore<T>::gather(Index u, T* unit, const tensor::Execution& exec,
                                        comm::Communicator& comm) const {
  const Index shard = layout_->unit(u).shard;
  return comm::begin_gather<T>(exec, comm, unit, shard, {0, shard}, owned(u),
                               comm::Purpose::parameters);
}

#define KZERO_INSTANTIATE(T) template class ParameterStore<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::zero
