#include "optim/kinds.hpp"

#include <cmath>

#include "kernels/adamw.hpp"
#include "optim/elementwise.hpp"

namespace kzero::optim {

namespace {

class AdamW : public RuleOptimizer<AdamW, kernels::AdamWStep> {
 public:
  using RuleOptimizer::RuleOptimizer;

  std::string_view kind() const override { return "adamw"; }
  const param::StateArrays& state() const override { return adamw_state(); }

  kernels::AdamWStep rule_of(const Update& update, double weight_decay) const {
    return adamw_step(deck_, update, weight_decay);
  }
};

}  // namespace

kernels::AdamWStep adamw_step(const deck::Optimizer& deck, const Update& update,
                              double weight_decay) {
  const auto bias = [&](double beta) {
    return static_cast<float>(1 - std::pow(beta, static_cast<double>(update.number)));
  };
  kernels::AdamWStep step;
  step.lr = static_cast<float>(update.lr);
  step.beta1 = static_cast<float>(deck.beta1);
  step.beta2 = static_cast<float>(deck.beta2);
  step.one_minus_beta1 = static_cast<float>(1 - deck.beta1);
  step.one_minus_beta2 = static_cast<float>(1 - deck.beta2);
  step.eps = static_cast<float>(deck.eps);
  step.decay = static_cast<float>(weight_decay);
  step.cautious = deck.cautious_decay;
  step.correction1 = bias(deck.beta1);
  step.correction2 = bias(deck.beta2);
  step.gradient_scale = static_cast<float>(update.gradient_scale);
  return step;
}

const param::StateArrays& adamw_state() {
  static const param::StateArrays arrays{
      {param::master_weights}, {"first_moment"}, {"second_moment"}};
  return arrays;
}

std::unique_ptr<const Optimizer> make_adamw(const deck::Optimizer& deck) {
  return std::make_unique<AdamW>(deck);
}

}  // namespace kzero::optim
