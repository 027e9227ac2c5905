#include "optim/optimizer.hpp"

#include <cmath>

#include "kernels/adamw.hpp"

namespace kzero::optim {

double gradient_scale(double norm, double clip, double loss_scale) {
  const double clipping = clip > 0 && norm > clip ? clip / norm : 1;
  return clipping / loss_scale;
}

template <class T>
void update(const tensor::Execution& exec, const deck::Optimizer& o, double lr, Index updates,
            double scale, const Share<T>& share) {
  kernels::AdamWStep step;
  step.lr = static_cast<float>(lr);
  step.beta1 = static_cast<float>(o.beta1);
  step.beta2 = static_cast<float>(o.beta2);
  step.rest1 = static_cast<float>(1 - o.beta1);
  step.rest2 = static_cast<float>(1 - o.beta2);
  step.eps = static_cast<float>(o.eps);
  step.correction1 = static_cast<float>(1 - std::pow(o.beta1, static_cast<double>(updates)));
  step.correction2 = static_cast<float>(1 - std::pow(o.beta2, static_cast<double>(updates)));
  step.gradient_scale = static_cast<float>(scale);
  for (const param::Part& part : param::parts(*share.spec, *share.layout, share.begin, share.end)) {
    const Index at = part.in_unit - share.begin;
    const auto count = static_cast<std::size_t>(part.count);
    step.decay = share.spec->params[static_cast<std::size_t>(part.param)].decays
                     ? static_cast<float>(o.weight_decay)
                     : 0.0F;
    kernels::adamw<T>(exec, step, {share.gradient + at, count}, {share.state.master + at, count},
                      {share.state.first + at, count}, {share.state.second + at, count},
                      {share.parameters + at, count});
  }
}

template void update<float>(const tensor::Execution&, const deck::Optimizer&, double, Index, double,
                            const Share<float>&);
template void update<bf16>(const tensor::Execution&, const deck::Optimizer&, double, Index, double,
                           const Share<bf16>&);
template void update<fp16>(const tensor::Execution&, const deck::Optimizer&, double, Index, double,
                           const Share<fp16>&);

}  // namespace kzero::optim
