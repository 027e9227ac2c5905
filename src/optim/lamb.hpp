// LAMB (You et al., arXiv 1904.00962, algorithm 2), with Adam's moments and their bias correction.
#pragma once

#include "optim/optimizer.hpp"

namespace kzero::optim {

/// Makes LAMB with the deck's beta1, beta2, eps and weight_decay; K = 12 bytes an element. Its two
/// passes add up two sums a parameter.
std::unique_ptr<const Optimizer> make_lamb(const deck::Optimizer& deck);

/// The factor of a parameter's step: the norm of its weights over that of their direction, by the
/// squares of both, within [0.01, 10]; 1 if either is 0.
double trust_ratio(double weight_squares, double direction_squares);

}  // namespace kzero::optim
