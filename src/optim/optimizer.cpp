#include "optim/optimizer.hpp"

#include "base/error.hpp"
#include "optim/adamw.hpp"

namespace kzero::optim {

double gradient_scale(double norm, double clip, double loss_scale) {
  const double clipping = clip > 0 && norm > clip ? clip / norm : 1;
  return clipping / loss_scale;
}

std::unique_ptr<const Optimizer> make_optimizer(const deck::Optimizer& deck) {
  switch (deck.kind) {
    case deck::OptimizerKind::adamw:
      return make_adamw(deck);
  }
  fail(ExitCode::other, "internal error: no optimizer of kind {}", static_cast<int>(deck.kind));
}

}  // namespace kzero::optim
