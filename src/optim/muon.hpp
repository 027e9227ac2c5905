// Muon (Jordan et al., "Muon: an optimizer for hidden layers", github.com/KellerJordan/Muon) with
// the scale and weight decay of Liu et al., "Muon is scalable for LLM training"
// (arXiv 2502.16982), with which AdamW's learning rate and decay can be used:
//   B = mu B + (1 - mu) g;  u = (1 - mu) g + mu B with Nesterov's form, else B
//   X = Newton-Schulz(u);  w = w (1 - lr decay) - lr 0.2 sqrt(max(rows, columns)) X
// for the hidden matrices that the model's table of parameters names. All other parameters are
// updated by AdamW with the same lr and decay.
#pragma once

#include "optim/optimizer.hpp"

namespace kzero::optim {

/// Makes Muon with the deck's momentum and nesterov for hidden matrices, beta1, beta2 and eps for
/// other parameters, and weight_decay. K = 8 bytes per element of a hidden matrix, otherwise 12.
std::unique_ptr<const Optimizer> make_muon(const deck::Optimizer& deck);

}  // namespace kzero::optim
