// SGD with momentum (Sutskever et al., ICML 2013, in the form of PyTorch's SGD without dampening),
// with decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101, algorithm 1):
//   m = momentum m + g; d = g + momentum m with Nesterov's momentum, else m;
//   w = w (1 - lr decay) - lr d
#pragma once

#include "optim/elementwise.hpp"

namespace kzero::optim {

struct SgdRule {
  static constexpr int arrays = 2;

  float lr = 0;
  float kept = 1;  // factor on a weight: 1 - lr decay
  bool cautious = false;
  float momentum = 0;
  bool nesterov = false;
  float gradient_scale = 1;

  KOKKOS_INLINE_FUNCTION void operator()(float gradient, float (&state)[arrays]) const {
    const float g = gradient * gradient_scale;
    const float m = Kokkos::fma(momentum, state[1], g);
    const float d = nesterov ? Kokkos::fma(momentum, m, g) : m;
    state[0] = Kokkos::fma(-lr, d, state[0] * kernels::kept_of(kept, cautious, d, state[0]));
    state[1] = m;
  }
};

/// SGD with the deck's momentum, nesterov and weight_decay. K = 8 bytes per element.
class Sgd : public RuleOptimizer<Sgd, SgdRule> {
 public:
  using RuleOptimizer::RuleOptimizer;

  std::string_view kind() const override { return "sgd"; }

  const param::StateArrays& state() const override {
    static const param::StateArrays arrays{{param::master_weights}, {"momentum"}};
    return arrays;
  }

  SgdRule rule_of(const Update& update, double weight_decay) const {
    return {.lr = static_cast<float>(update.lr),
            .kept = kept_after_decay(update, weight_decay),
            .cautious = deck_.cautious_decay,
            .momentum = static_cast<float>(deck_.momentum),
            .nesterov = deck_.nesterov,
            .gradient_scale = static_cast<float>(update.gradient_scale)};
  }
};

}  // namespace kzero::optim
