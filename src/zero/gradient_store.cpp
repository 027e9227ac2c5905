#include "zero/gradient_store.hpp"

#include <algorithm>

#include "base/error.hpp"
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
      targets_(targets),
      bucket_(arenas, options.order == Order::library ? 0 : options.bucket, dtype_of<T>, layout,
              options.overlap, options.sums, options.later),
      units_(layout.units().size() * static_cast<std::size_t>(options.sums.own())) {
  if (!arenas.measuring()) stream_.emplace();
  if (stays()) {
    units_ = held_.units();
  } else {
    passing_ = arenas.take<T>(Category::gradients, options.sums.own() * targets);
  }
  take_open_sums(arenas);
}

template <class T>
void GradientStore<T>::follow(const SumPlan& sums, bool adds_reduced) {
  KZERO_EXPECT(under_way_.empty() && sums.own() == options_.sums.own());
  options_.sums = sums;
  options_.adds_reduced = adds_reduced;
}

/// Sets the places of unit u of all chunks, or none.
template <class T>
void GradientStore<T>::set(Index u, T* first) {
  for (Index chunk = 0; chunk < options_.sums.own(); ++chunk) {
    units_[chunk * std::ssize(layout_->units()) + u] =
        first == nullptr ? nullptr : first + chunk * targets_;
  }
}

/// Allocates the sums that are kept between rounds.
template <class T>
void GradientStore<T>::take_open_sums(memory::Arenas& arenas) {
  int open = options_.sums.owner_open(), node_open = options_.sums.node_open();
  for (const SumPlan& sums : options_.later) {
    open = std::max(open, sums.owner_open());
    node_open = std::max(node_open, sums.node_open());
  }
  if (open > 0) {
    if constexpr (dtype_of<T> == Dtype::fp32) {
      if (options_.stage.gradients == Placement::partitioned) oldest_ = held_;
    }
    if (oldest_.units().empty()) {
      oldest_ = FlatBuffer<float>(arenas, Category::gradients, *layout_, Placement::partitioned);
    }
    others_ = arenas.take<float>(Category::gradients, (open - 1) * layout_->owned_total());
  }
  node_open_ = arenas.take<float>(Category::gradients,
                                  node_open * options_.sums.nodes() * layout_->owned_total());
}

template <class T>
UnitGradients<T> GradientStore<T>::terms_of(Index u) const {
  const bool is_elsewhere = has_chunks() && options_.stage.gradients == Placement::replicated;
  return {units_[u], targets_, is_elsewhere ? held_.unit(u) : units_[u]};
}

template <class T>
UnitSums<T> GradientStore<T>::sums_of(Index u) const {
  UnitSums<T> sums{.out = owned(u), .owner = {}, .node = {}};
  const Index stride = layout_->owned_total(), at = layout_->unit(u).owned;
  if (!oldest_.units().empty()) sums.owner = {oldest_.unit(u), others_ + at, stride};
  if (node_open_ != nullptr) {
    const Index nodes = options_.sums.nodes();
    float* const first = node_open_ + nodes * at;
    sums.node = {first, first + nodes * stride, nodes * stride};
  }
  return sums;
}

template <class T>
void GradientStore<T>::before(const ScheduleStep& step, const tensor::Execution& exec) {
  for (const BufferOffset& place : step.targets) {
    const param::UnitLayout& layout = layout_->unit(place.unit);
    T* first = passing_ + place.offset;
    set(place.unit, first);
    // The reduction includes the padding. Values of an earlier unit must not remain there.
    const auto padding = static_cast<std::size_t>(layout.padded - layout.elements);
    for (Index chunk = 0; chunk < options_.sums.own() && padding > 0; ++chunk) {
      T* const end = first + chunk * targets_ + layout.elements;
      kernels::fill<T>(exec, tensor::Vector<T>(end, padding), 0);
    }
  }
}

template <class T>
void GradientStore<T>::after(const ScheduleStep& step, const Round& round,
                             const tensor::Execution& exec, comm::Communicator& comm) {
  end_reductions();
  if (!options_.adds_reduced && !round.last) return;
  const bool wanted_everywhere = options_.stage.optimizer == Placement::replicated;
  for (const Index u : step.complete) {
    under_way_.emplace_back(
        exec, *stream_, comm, bucket_, layout_->unit(u), terms_of(u), sums_of(u),
        wanted_everywhere && round.last ? Result::all_reduced : Result::reduce_scattered,
        options_.order, options_.sums, options_.adds_reduced ? round.number : 0);
    if (!stays()) set(u, nullptr);
    // The bucket serves one unit at a time.
    if (options_.overlap == comm::Overlap::no || u != step.complete.back()) end_reductions();
  }
}

template <class T>
void GradientStore<T>::drop(const ScheduleStep& step) {
  if (stays()) return;
  for (const Index u : step.complete) set(u, nullptr);
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
