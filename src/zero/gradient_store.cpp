#include "zero/gradient_store.hpp"

#include <algorithm>

#include "kernels/initialize.hpp"

namespace kzero::zero {

using memory::Category;

template <class T>
GradientStore<T>::GradientStore(memory::Arenas& arenas, const param::FlatLayout& layout,
                                const GradientOptions& options, Index targets, Index rank)
    : layout_(&layout),
      options_(options),
      rank_(rank),
      held_(arenas, Category::gradients, layout, options.stage.gradients),
      bucket_(arenas, options.order == Order::library ? 0 : options.bucket, dtype_of<T>, layout,
              options.overlap),
      units_(layout.units().size()) {
  if (!arenas.measuring()) stream_.emplace();
  const bool replicated = options.stage.gradients == Placement::replicated;
  if (replicated) {
    units_ = held_.units();
  } else {
    passing_ = arenas.take<T>(Category::gradients, targets);
  }
  if (options.adds_reduced) {
    if constexpr (dtype_of<T> == Dtype::fp32) {
      sums_ = replicated
                  ? FlatBuffer<float>(arenas, Category::gradients, layout, Placement::partitioned)
                  : held_;
    } else {
      sums_ = FlatBuffer<float>(arenas, Category::gradients, layout, Placement::partitioned);
    }
  }
}

template <class T>
void GradientStore<T>::before(const ScheduleStep& step, const tensor::Execution& exec) {
  for (const BufferOffset& place : step.targets) {
    const param::UnitLayout& layout = layout_->unit(place.unit);
    T* unit = passing_ + place.offset;
    units_[place.unit] = unit;
    // The reduction includes the padding. Values of an earlier unit must not remain there.
    const Index padding = layout.padded - layout.elements;
    if (padding == 0) continue;
    kernels::fill<T>(
        exec, tensor::Vector<T>(unit + layout.elements, static_cast<std::size_t>(padding)), 0);
  }
}

template <class T>
void GradientStore<T>::after(const ScheduleStep& step, const Round& round,
                             const tensor::Execution& exec, comm::Communicator& comm) {
  end_reductions();
  if (!options_.adds_reduced && !round.last) return;
  const bool wanted_everywhere = options_.stage.optimizer == Placement::replicated;
  for (const Index u : step.complete) {
    T*& unit = units_[u];
    under_way_.emplace_back(
        exec, *stream_, comm, bucket_, layout_->unit(u), unit, destination(u, round),
        wanted_everywhere && round.last ? Result::all_reduced : Result::reduce_scattered,
        Terms{options_.order, options_.adds_reduced ? round.ranks : comm.size()});
    if (options_.stage.gradients == Placement::partitioned) unit = nullptr;
    // The bucket serves one unit at a time.
    if (options_.overlap == comm::Overlap::no || u != step.complete.back()) end_reductions();
  }
}

template <class T>
void GradientStore<T>::drop(const ScheduleStep& step) {
  if (options_.stage.gradients == Placement::replicated) return;
  for (const Index u : step.complete) units_[u] = nullptr;
}

template <class T>
OwnedSum<T> GradientStore<T>::destination(Index u, const Round& round) const {
  if (!options_.adds_reduced) return {nullptr, nullptr, owned(u)};
  float* sum = sums_.unit(u);
  const float* base = round.first ? nullptr : sum;
  if (round.last) return {base, nullptr, owned(u)};
  return {base, sum, nullptr};
}

template <class T>
void GradientStore<T>::end_reductions() {
  for (Reduction<T>& reduction : under_way_)
    last_gather_ = std::max(last_gather_, reduction.finish());
  under_way_.clear();
}

template <class T>
void GradientStore<T>::finish(const tensor::Execution& exec, comm::Communicator& comm) {
  end_reductions();
  comm.wait(exec, last_gather_);
}

#define KZERO_INSTANTIATE(T) template class GradientStore<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::zero
