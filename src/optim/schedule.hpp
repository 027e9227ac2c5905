// The learning rate as a function of the step alone.
#pragma once

#include "deck/config.hpp"

namespace kzero::optim {

/// Returns lr (step + 1) / warmup while step < warmup; then falls from lr to min_lr over the
/// remaining steps, along half a cosine or a line, or stays at lr.
double learning_rate(const deck::Optimizer& optimizer, Index step, Index steps);

}  // namespace kzero::optim
