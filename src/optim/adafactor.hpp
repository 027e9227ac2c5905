// Adafactor (Shazeer and Stern, arXiv 1804.04235), as torch.optim.Adafactor has it: the second
// moment of a matrix is the product of its rows' and columns' means, and there is no first moment.
#pragma once

#include "optim/optimizer.hpp"

namespace kzero::optim {

/// Makes Adafactor with the deck's eps and weight_decay; K = 4 bytes an element, and 4 a row and a
/// column. Its three passes add up 16 bytes a row and a column, and two sums a parameter. Runs on
/// the host's cores alone: builds for devices need zero.offload = "host".
std::unique_ptr<const Optimizer> make_adafactor(const deck::Optimizer& deck);

}  // namespace kzero::optim
