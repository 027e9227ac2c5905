// The learning rate, a function of the step only.
#pragma once

#include "deck/config.hpp"

namespace kzero::optim {

/// Returns lr (step + 1) / warmup while step < warmup. After that, lr decreases to min_lr over the
/// remaining steps along half a cosine or a line, or stays constant. With "wsd" (Hu et al., arXiv
/// 2404.06395, section 4) it stays at lr, then falls to min_lr on a line over the last `decay`
/// steps.
double learning_rate(const deck::Optimizer& optimizer, Index step, Index steps);

}  // namespace kzero::optim
