// The learning rate as a function of the step alone.
#pragma once

#include "deck/config.hpp"

namespace kzero::optim {

/// lr (step + 1) / warmup while step < warmup; then from lr to min_lr over the steps that remain,
/// along half a cosine or a line, or lr throughout.
double learning_rate(const deck::Optimizer& optimizer, Index step, Index steps);

}  // namespace kzero::optim
