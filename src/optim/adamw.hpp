// AdamW (Loshchilov and Hutter, arXiv 1711.05101): master weights and both moments in fp32,
// whatever the precision of the model.
#pragma once

#include "optim/optimizer.hpp"

namespace kzero::optim {

/// Master weights, first and second moment: K = 12 bytes an element.
const param::StateArrays& adamw_state();

/// Makes AdamW with the deck's beta1, beta2, eps and weight_decay.
std::unique_ptr<const Optimizer> make_adamw(const deck::Optimizer& deck);

}  // namespace kzero::optim
