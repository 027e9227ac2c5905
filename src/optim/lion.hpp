// Lion (Chen et al., arXiv 2302.06675, algorithm 2):
//   w = w (1 - lr decay) - lr sign(beta1 m + (1 - beta1) g); then m = beta2 m + (1 - beta2) g
// The sign of 0 is 0.
#pragma once

#include "optim/elementwise.hpp"

namespace kzero::optim {

struct LionRule {
  static constexpr int arrays = 2;

  float lr = 0;
  float kept = 1;  // factor on a weight: 1 - lr decay
  bool cautious = false;
  float beta1 = 0, beta2 = 0;
  float one_minus_beta1 = 1, one_minus_beta2 = 1;  // subtracted in fp64
  float gradient_scale = 1;

  KOKKOS_INLINE_FUNCTION void operator()(float gradient, float (&state)[arrays]) const {
    const float g = gradient * gradient_scale;
    const float direction = Kokkos::fma(beta1, state[1], one_minus_beta1 * g);
    const float step = direction > 0 ? lr : direction < 0 ? -lr : 0.0F;
    state[0] = Kokkos::fma(state[0], kernels::kept_of(kept, cautious, direction, state[0]), -step);
    state[1] = Kokkos::fma(beta2, state[1], one_minus_beta2 * g);
  }
};

/// Lion with the deck's beta1, beta2 and weight_decay. K = 8 bytes per element.
class Lion : public RuleOptimizer<Lion, LionRule> {
 public:
  using RuleOptimizer::RuleOptimizer;

  std::string_view kind() const override { return "lion"; }

  const param::StateArrays& state() const override {
    static const param::StateArrays arrays{{param::master_weights}, {"momentum"}};
    return arrays;
  }

  LionRule rule_of(const Update& update, double weight_decay) const {
    return {.lr = static_cast<float>(update.lr),
            .kept = kept_after_decay(update, weight_decay),
            .cautious = deck_.cautious_decay,
            .beta1 = static_cast<float>(deck_.beta1),
            .beta2 = static_cast<float>(deck_.beta2),
            .one_minus_beta1 = static_cast<float>(1 - deck_.beta1),
            .one_minus_beta2 = static_cast<float>(1 - deck_.beta2),
            .gradient_scale = static_cast<float>(update.gradient_scale)};
  }
};

}  // namespace kzero::optim
