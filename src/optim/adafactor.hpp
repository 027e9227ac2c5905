// Adafactor (Shazeer and Stern, arXiv 1804.04235), in the form of torch.optim.Adafactor. The second
// moment of a matrix is the product of the means of its rows and columns. There is no first moment.
#pragma once

#include "optim/optimizer.hpp"

namespace kzero::optim {

/// Makes Adafactor with the deck's eps and weight_decay. K = 4 bytes per element, and 4 per row and
/// per column. Its three passes add up 16 bytes per row and per column, and two sums per parameter.
/// It runs only on the host's cores, so builds for devices need zero.offload = "host".
std::unique_ptr<const Optimizer> make_adafactor(const deck::Optimizer& deck);

}  // namespace kzero::optim
