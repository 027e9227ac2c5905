#include "optim/cpu_offload.hpp"

namespace kzero::optim {

namespace {

/// Slots end only where shards may end, so a unit's block sums do not depend on the slot size.
constexpr Index min_elements = param::shard_alignment;

}  // namespace

template <class T>
CpuOffloadOptimizer<T>::CpuOffloadOptimizer(memory::Arenas& arenas, Index bytes)
    : elements_(std::max(min_elements, bytes / 2 / slots / static_cast<Index>(sizeof(T)) /
                                           min_elements * min_elements)) {
  for (Slot& slot : slots_) {
    slot.gradient = arenas.take<T>(memory::Category::offloaded, elements_);
    slot.parameters = arenas.take<T>(memory::Category::offloaded, elements_);
  }
  if (!arenas.measuring()) stream_.emplace(runtime::make_stream());
}

template <class T>
void CpuOffloadOptimizer<T>::fetch(const Share<T>& share, Index at, Slot& slot) {
  const auto count = static_cast<std::size_t>(count_at(share, at));
  Kokkos::deep_copy(*stream_, Host(slot.gradient, count),
                    tensor::Vector<const T>(share.gradient + at, count));
  slot.fetched.record(*stream_);
}

/// Calls work(part) for every part of the share, with its gradient and parameters in a slot. Copies
/// the slot's `result` to `target` on the device unless `target` is null.
template <class T>
template <class Work>
void CpuOffloadOptimizer<T>::pass(const tensor::Execution& exec, const Share<T>& share,
                                  T* Slot::*result, T* target, const Work& work) {
  ready_.order(exec, *stream_);
  const Index count = share.end - share.begin;
  if (count > 0) fetch(share, 0, slots_[0]);
  for (Index at = 0, turn = 0; at < count; at += elements_, turn = 1 - turn) {
    Slot& slot = slots_[turn];
    if (at + elements_ < count) fetch(share, at + elements_, slots_[1 - turn]);
    slot.fetched.synchronize();
    slot.sent.synchronize();
    Share<T> part = share;
    part.begin = share.begin + at;
    part.end = part.begin + count_at(share, at);
    part.gradient = slot.gradient;
    part.parameters = slot.parameters;
    part.state = share.state + at;
    part.prepared = slot.gradient;
    work(part);
    if (target == nullptr) continue;
    const auto extent = static_cast<std::size_t>(part.end - part.begin);
    Kokkos::deep_copy(*stream_, tensor::Vector<T>(target + at, extent), Host(slot.*result, extent));
    slot.sent.record(*stream_);
    slot.sent.wait(exec);
  }
}

template <class T>
void CpuOffloadOptimizer<T>::apply(const tensor::Execution& exec, const Optimizer& optimizer,
                                   const Update& update, const Share<T>& share) {
  const bool changes_parameters = update.pass + 1 == optimizer.passes();
  pass(exec, share, &Slot::parameters, changes_parameters ? share.parameters : nullptr,
       [&](const Share<T>& part) { optimizer.update(tensor::HostCores(), update, part); });
}

template <class T>
void CpuOffloadOptimizer<T>::prepare(const tensor::Execution& exec, const MatrixRule& rule,
                                     const Update& update, const Share<T>& share) {
  pass(exec, share, &Slot::gradient, share.prepared,
       [&](const Share<T>& part) { rule.prepare(tensor::HostCores(), update, part); });
}

#define KZERO_INSTANTIATE(T) template class CpuOffloadOptimizer<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::optim
