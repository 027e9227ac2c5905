#include "optim/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/adamw.hpp"

namespace kzero::optim {

double gradient_scale(double norm, double clip, double loss_scale) {
  const double clipping = clip > 0 && norm > clip ? clip / norm : 1;
  return clipping / loss_scale;
}

namespace {

kernels::AdamWStep step_of(const deck::Optimizer& o, const Update& update) {
  const auto bias = [&](double beta) {
    return static_cast<float>(1 - std::pow(beta, static_cast<double>(update.number)));
  };
  kernels::AdamWStep step;
  step.lr = static_cast<float>(update.lr);
  step.beta1 = static_cast<float>(o.beta1);
  step.beta2 = static_cast<float>(o.beta2);
  step.one_minus_beta1 = static_cast<float>(1 - o.beta1);
  step.one_minus_beta2 = static_cast<float>(1 - o.beta2);
  step.eps = static_cast<float>(o.eps);
  step.correction1 = bias(o.beta1);
  step.correction2 = bias(o.beta2);
  step.gradient_scale = static_cast<float>(update.gradient_scale);
  return step;
}

/// apply(step, arrays, count) for every parameter's part of a share.
template <class T, class Apply>
void for_each_part(const deck::Optimizer& o, const Update& update, const Share<T>& share,
                   const Apply& apply) {
  kernels::AdamWStep step = step_of(o, update);
  const kernels::AdamWArrays<T> arrays{share.gradient, share.state.master, share.state.first,
                                       share.state.second, share.parameters};
  for (const param::Part& part : param::parts(*share.spec, *share.layout, share.begin, share.end)) {
    const bool decays = share.spec->params[static_cast<std::size_t>(part.param)].decays;
    step.decay = decays ? static_cast<float>(o.weight_decay) : 0.0F;
    apply(step, arrays + (part.in_unit - share.begin), part.count);
  }
}

}  // namespace

template <class T>
void apply(const tensor::Execution& exec, const deck::Optimizer& optimizer, const Update& update,
           const Share<T>& share) {
  for_each_part(optimizer, update, share, [&](const auto& step, const auto& arrays, Index count) {
    kernels::adamw<T>(exec, step, arrays, count);
  });
}

template <class T>
CpuOffloadOptimizer<T>::CpuOffloadOptimizer(memory::Arenas& arenas, Index bytes)
    : elements_(std::max<Index>(1, bytes / 2 / slots / static_cast<Index>(sizeof(T)))) {
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

template <class T>
void CpuOffloadOptimizer<T>::apply(const tensor::Execution& exec, const deck::Optimizer& optimizer,
                                   const Update& update, const Share<T>& share) {
  ready_.order(exec, *stream_);
  const Index count = share.end - share.begin;
  if (count > 0) fetch(share, 0, slots_[0]);
  for (Index at = 0, turn = 0; at < count; at += elements_, turn = 1 - turn) {
    Slot& slot = slots_[static_cast<std::size_t>(turn)];
    if (at + elements_ < count)
      fetch(share, at + elements_, slots_[static_cast<std::size_t>(1 - turn)]);
    slot.fetched.synchronize();
    slot.sent.synchronize();
    Share<T> part = share;
    part.begin = share.begin + at;
    part.end = part.begin + count_at(share, at);
    part.gradient = slot.gradient;
    part.parameters = slot.parameters;
    part.state = {share.state.master + at, share.state.first + at, share.state.second + at};
    for_each_part(optimizer, update, part, [](const auto& step, const auto& arrays, Index n) {
      kernels::adamw_on_host<T>(step, arrays, n);
    });
    const auto extent = static_cast<std::size_t>(part.end - part.begin);
    Kokkos::deep_copy(*stream_, tensor::Vector<T>(share.parameters + at, extent),
                      Host(slot.parameters, extent));
    slot.sent.record(*stream_);
    slot.sent.wait(exec);
  }
}

#define KZERO_INSTANTIATE(T)                                                              \
  template void apply<T>(const tensor::Execution&, const deck::Optimizer&, const Update&, \
                         const Share<T>&);                                                \
  template class CpuOffloadOptimizer<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::optim
