#include "optim/adamw.hpp"

#include <cmath>

#include "kernels/adamw.hpp"
#include "optim/elementwise.hpp"

namespace kzero::optim {

namespace {

class AdamW : public ElementwiseOptimizer<AdamW> {
 public:
  explicit AdamW(const deck::Optimizer& deck) : deck_(deck) {}

  const param::StateArrays& state() const override { return adamw_state(); }

  kernels::AdamWStep step_of(const Update& update) const {
    const auto bias = [&](double beta) {
      return static_cast<float>(1 - std::pow(beta, static_cast<double>(update.number)));
    };
    kernels::AdamWStep step;
    step.lr = static_cast<float>(update.lr);
    step.beta1 = static_cast<float>(deck_.beta1);
    step.beta2 = static_cast<float>(deck_.beta2);
    step.one_minus_beta1 = static_cast<float>(1 - deck_.beta1);
    step.one_minus_beta2 = static_cast<float>(1 - deck_.beta2);
    step.eps = static_cast<float>(deck_.eps);
    step.correction1 = bias(deck_.beta1);
    step.correction2 = bias(deck_.beta2);
    step.gradient_scale = static_cast<float>(update.gradient_scale);
    return step;
  }

  template <class T>
  void apply(const tensor::Execution& exec, const kernels::AdamWStep& step,
             const ParameterPart<T>& part) const {
    kernels::adamw<T>(exec, with_decay(step, part.decays), arrays_of(part), part.count);
  }

  template <class T>
  void apply_on_host(const kernels::AdamWStep& step, const ParameterPart<T>& part) const {
    kernels::adamw_on_host<T>(with_decay(step, part.decays), arrays_of(part), part.count);
  }

 private:
  kernels::AdamWStep with_decay(kernels::AdamWStep step, bool decays) const {
    step.decay = decays ? static_cast<float>(deck_.weight_decay) : 0.0F;
    return step;
  }

  /// The arrays in the order of adamw_state().
  template <class T>
  static kernels::AdamWArrays<T> arrays_of(const ParameterPart<T>& part) {
    return {part.gradient, part.state[0], part.state[1], part.state[2], part.parameters};
  }

  const deck::Optimizer deck_;
};

}  // namespace

const param::StateArrays& adamw_state() {
  static const param::StateArrays arrays{
      {param::master_weights}, {"first_moment"}, {"second_moment"}};
  return arrays;
}

std::unique_ptr<const Optimizer> make_adamw(const deck::Optimizer& deck) {
  return std::make_unique<AdamW>(deck);
}

}  // namespace kzero::optim
