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
void ParameterStore<T>::enter(const Moment& moment, const tensor::Execution& exec,
                              comm::Communicator& comm) {
  // What lies where these units will lie has been used.
  if (!moment.gathers.empty()) exec.fence("kzero::zero::place_is_free");
  for (const Place& place : moment.gathers) {
    const auto u = static_cast<std::size_t>(place.unit);
    const param::UnitLayout& layout = layout_->unit(place.unit);
    T* unit = gathered_ + place.offset;
    arrivals_[u] = gather(place.unit, unit, comm);
    const auto count = static_cast<std::size_t>(layout.piece);
    Kokkos::deep_copy(exec, tensor::Vector<T>(unit + rank_ * layout.piece, count),
                      tensor::Vector<const T>(owned(place.unit), count));
    units_[u] = unit;
  }
  for (const Index u : moment.needs) comm.wait(arrivals_[static_cast<std::size_t>(u)]);
}

template <class T>
void ParameterStore<T>::leave(const Moment& moment) {
  for (const Index u : moment.releases) units_[static_cast<std::size_t>(u)] = nullptr;
}

template <class T>
comm::Ticket ParameterStore<T>::publish(Index u, const tensor::Execution& exec,
                                        comm::Communicator& comm) const {
  exec.fence("kzero::zero::parameters_updated");
  return gather(u, held_.unit(u), comm);
}

template <class T>
comm::Ticket ParameterStore<T>::gather(Index u, T* unit, comm::Communicator& comm) const {
  const Index piece = layout_->unit(u).piece;
  return comm::begin_gather<T>(comm, unit, piece, {0, piece}, owned(u), comm::Purpose::parameters);
}

template class ParameterStore<float>;
template class ParameterStore<bf16>;
template class ParameterStore<fp16>;

}  // namespace kzero::zero
