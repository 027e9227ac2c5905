#include <algorithm>
#include <cmath>

#include "optim/elementwise.hpp"
#include "optim/kinds.hpp"

namespace kzero::optim {

namespace {

struct AdEMAMixRule {
  static constexpr int arrays = 4;

  kernels::AdamWStep adam;
  float kept = 1;             // factor on a weight: 1 - lr decay
  float one_minus_beta3 = 1;  // subtracted in fp64
  float alpha = 0;

  KOKKOS_INLINE_FUNCTION void operator()(float gradient, float (&state)[arrays]) const {
    float &w = state[0], &m = state[1], &v = state[2], &slow = state[3];
    const float g = gradient * adam.gradient_scale;
    m = Kokkos::fma(adam.beta1, m, adam.one_minus_beta1 * g);
    v = Kokkos::fma(adam.beta2, v, adam.one_minus_beta2 * g * g);
    // In fp32 beta3 and 1 - beta3 do not add up to 1. Their error / (1 - beta3) would scale the
    // moment.
    slow = Kokkos::fma(one_minus_beta3, Kokkos::fma(gradient, adam.gradient_scale, -slow), slow);
    const float both = Kokkos::fma(alpha, slow, m / adam.correction1);
    const float step = adam.lr * both / (Kokkos::sqrt(v / adam.correction2) + adam.eps);
    w = Kokkos::fma(w, kernels::kept_of(kept, adam.cautious, step, w), -step);
  }
};

class AdEMAMix : public RuleOptimizer<AdEMAMix, AdEMAMixRule> {
 public:
  using RuleOptimizer::RuleOptimizer;

  std::string_view kind() const override { return "ademamix"; }

  const param::StateArrays& state() const override {
    static const param::StateArrays arrays{
        {param::master_weights}, {"first_moment"}, {"second_moment"}, {"slow_moment"}};
    return arrays;
  }

  AdEMAMixRule rule_of(const Update& update, double weight_decay) const {
    return {.adam = adamw_step(deck_, update, weight_decay),
            .kept = kept_after_decay(update, weight_decay),
            .one_minus_beta3 = static_cast<float>(1 - slow_beta(deck_, update.number)),
            .alpha = static_cast<float>(slow_alpha(deck_, update.number))};
  }
};

/// The share of the warm-up that is over, up to 1.
double warmed(const deck::Optimizer& deck, Index number) {
  if (number >= deck.slow_warmup) return 1;
  return static_cast<double>(number) / static_cast<double>(deck.slow_warmup);
}

}  // namespace

double slow_alpha(const deck::Optimizer& deck, Index number) {
  return warmed(deck, number) * deck.alpha;
}

double slow_beta(const deck::Optimizer& deck, Index number) {
  const double share = warmed(deck, number);
  if (share == 1) return deck.beta3;
  const double life = (1 - share) / std::log(deck.beta1) + share / std::log(deck.beta3);
  return std::min(std::exp(1 / life), deck.beta3);
}

std::unique_ptr<const Optimizer> make_ademamix(const deck::Optimizer& deck) {
  return std::make_unique<AdEMAMix>(deck);
}

}  // namespace kzero::optim
