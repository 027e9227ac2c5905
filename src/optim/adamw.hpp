// AdamW (Loshchilov and Hutter, arXiv 1711.05101). Master weights and both moments are in fp32 in
// every precision of the model.
#pragma once

#include "kernels/adamw.hpp"
#include "optim/optimizer.hpp"

namespace kzero::optim {

/// Master weights, first and second moment: K = 12 bytes per element.
const param::StateArrays& adamw_state();

/// The kernel's rule for one update, with the deck's beta1, beta2, eps and weight_decay.
kernels::AdamWStep adamw_step(const deck::Optimizer& deck, const Update& update,
                              double weight_decay);

std::unique_ptr<const Optimizer> make_adamw(const deck::Optimizer& deck);

}  // namespace kzero::optim
