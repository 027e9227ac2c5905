#include "optim/optimizer.hpp"

#include "base/error.hpp"
#include "optim/kinds.hpp"
#include "optim/lion.hpp"
#include "optim/sgd.hpp"

namespace kzero::optim {

double gradient_scale(double norm, double clip, double loss_scale) {
  const double clipping = clip > 0 && norm > clip ? clip / norm : 1;
  return clipping / loss_scale;
}

float kept_after_decay(const Update& update, double weight_decay) {
  return static_cast<float>(1 - update.lr * weight_decay);
}

ParameterRates rates_of(const deck::Optimizer& deck, const param::ParamSpec& parameter) {
  ParameterRates rates{parameter.lr_scale, parameter.decays ? deck.weight_decay : 0};
  if (parameter.group >= 0 && !parameter.follows_choices) {
    const deck::OptimizerGroup& group = deck.groups[parameter.group];
    rates.lr_scale *= group.lr_scale;
    if (group.weight_decay >= 0) rates.weight_decay = group.weight_decay;
  }
  rates.weight_decay /= parameter.lr_scale;  // lr * decay is that of the base width
  return rates;
}

namespace {

std::unique_ptr<const Optimizer> make_rule(const deck::Optimizer& deck, param::Axis outputs) {
  switch (deck.kind) {
    case deck::OptimizerKind::adamw:
      return make_adamw(deck);
    case deck::OptimizerKind::ademamix:
      return make_ademamix(deck);
    case deck::OptimizerKind::sgd:
      return std::make_unique<Sgd>(deck);
    case deck::OptimizerKind::lion:
      return std::make_unique<Lion>(deck);
    case deck::OptimizerKind::lamb:
      return make_lamb(deck);
    case deck::OptimizerKind::adafactor:
      return make_adafactor(deck);
    case deck::OptimizerKind::muon:
      return make_muon(deck);
    case deck::OptimizerKind::normuon:
      return make_normuon(deck, outputs);
  }
  fail(ExitCode::other, "internal error: no optimizer of kind {}", static_cast<int>(deck.kind));
}

}  // namespace

std::unique_ptr<const Optimizer> make_optimizer(const deck::Optimizer& deck, param::Axis outputs) {
  auto rule = make_rule(deck, outputs);
  return deck.ema > 0 ? make_averaged(std::move(rule), deck.ema) : std::move(rule);
}

std::unique_ptr<const Optimizer> make_optimizer(const deck::Config& config) {
  const bool is_in_out = config.model.family == deck::ModelFamily::gpt2;
  return make_optimizer(config.optimizer, is_in_out ? param::Axis::column : param::Axis::row);
}

}  // namespace kzero::optim
