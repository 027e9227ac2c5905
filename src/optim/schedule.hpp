// The learning rate, a function of the step only.
#pragma once

#include "deck/config.hpp"

namespace kzero::optim {

/// Returns lr (step + 1) / warmup while step < warmup. After that, lr decreases to min_lr over the
/// remaining steps along half a cosine or a line, or stays constant.
double learning_rate(const deck::Optimizer& optimizer, Index step, Index steps);

}  // namespace kzero::optim
