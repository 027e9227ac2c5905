// LAMB (You et al., arXiv 1904.00962, algorithm 2) with Adam's moments and their bias correction.
#pragma once

#include "optim/optimizer.hpp"

namespace kzero::optim {

/// Makes LAMB with the deck's beta1, beta2, eps and weight_decay. K = 12 bytes per element. Its two
/// passes add up two sums per parameter.
std::unique_ptr<const Optimizer> make_lamb(const deck::Optimizer& deck);

/// Returns the factor of a parameter's step from two squared norms: the norm of its weights divided
/// by the norm of its direction, clamped to [0.01, 10]. Returns 1 if either norm is 0.
double trust_ratio(double weight_squares, double direction_squares);

}  // namespace kzero::optim
