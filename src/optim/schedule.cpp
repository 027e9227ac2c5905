#include "optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kzero::optim {

double learning_rate(const deck::Optimizer& o, Index step, Index steps) {
  if (step < o.warmup) return o.lr * static_cast<double>(step + 1) / static_cast<double>(o.warmup);
  const double done = static_cast<double>(step - o.warmup) /
                      static_cast<double>(std::max<Index>(1, steps - o.warmup));
  switch (o.schedule) {
    case deck::Schedule::constant:
      return o.lr;
    case deck::Schedule::wsd: {
      const Index left = steps - step;
      if (left >= o.decay) return o.lr;
      return o.min_lr +
             (o.lr - o.min_lr) * static_cast<double>(left) / static_cast<double>(o.decay);
    }
    case deck::Schedule::linear:
      return o.lr + (o.min_lr - o.lr) * done;
    default:
      return o.min_lr + 0.5 * (o.lr - o.min_lr) * (1 + std::cos(std::numbers::pi * done));
  }
}

}  // namespace kzero::optim
