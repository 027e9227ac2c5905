// The optimizers and the average that have a source file of their own; sgd.hpp and lion.hpp have
// the others.
#pragma once

#include "kernels/adamw.hpp"
#include "optim/optimizer.hpp"

namespace kzero::optim {

// AdamW (Loshchilov and Hutter, arXiv 1711.05101). Master weights and both moments are in fp32 in
// every precision of the model.

/// Master weights, first and second moment: K = 12 bytes per element.
const param::StateArrays& adamw_state();

/// The kernel's rule for one update, with the deck's beta1, beta2, eps and weight_decay.
kernels::AdamWStep adamw_step(const deck::Optimizer& deck, const Update& update,
                              double weight_decay);

std::unique_ptr<const Optimizer> make_adamw(const deck::Optimizer& deck);

// AdEMAMix (Pagliardini, Ablin and Grangier, arXiv 2409.03137, algorithm 1): AdamW with a second,
// slow average s of the gradients, which is not corrected for its start at 0.
//   m = b1 m + (1 - b1) g; s = b3(t) s + (1 - b3(t)) g; v = b2 v + (1 - b2) g^2
//   w = w (1 - lr decay) - lr (m / (1 - b1^t) + a(t) s) / (sqrt(v / (1 - b2^t)) + eps)

/// Makes AdEMAMix with the deck's beta1, beta2, beta3, alpha, slow_warmup, eps and weight_decay.
/// K = 16 bytes per element.
std::unique_ptr<const Optimizer> make_ademamix(const deck::Optimizer& deck);

/// Its alpha and its beta3 in update `number`. Over the deck's slow_warmup, alpha rises on a line
/// from 0, and the logarithm of 1 / 2 to the base beta3, a half-life, from that of beta1.
double slow_alpha(const deck::Optimizer& deck, Index number);
double slow_beta(const deck::Optimizer& deck, Index number);

// Adafactor (Shazeer and Stern, arXiv 1804.04235), in the form of torch.optim.Adafactor. The second
// moment of a matrix is the product of the means of its rows and columns. There is no first moment.

/// Makes Adafactor with the deck's eps and weight_decay. K = 4 bytes per element, and 4 per row and
/// per column. Its three passes add up 16 bytes per row and per column, and two sums per parameter.
/// It runs only on the host's cores, so builds for devices need zero.offload = "host".
std::unique_ptr<const Optimizer> make_adafactor(const deck::Optimizer& deck);

// An exponential moving average of the weights (Polyak and Juditsky, SIAM J. Control Optim. 30,
// 1992; as an exponential average: Tarvainen and Valpola, arXiv 1703.01780). It is one more state
// array, so memory, offload and checkpoints treat it as the optimizer's other state.

/// Adds the array param::averaged_weights to the state of `rule`. After each update it becomes
///   e = e + (1 - decay) (w - e)
/// of the new master weights w, in fp32. Before the first update it is set to the weights from
/// which training started.
std::unique_ptr<const Optimizer> make_averaged(std::unique_ptr<const Optimizer> rule, double decay);

// LAMB (You et al., arXiv 1904.00962, algorithm 2) with Adam's moments and their bias correction.

/// Makes LAMB with the deck's beta1, beta2, eps and weight_decay. K = 12 bytes per element. Its two
/// passes add up two sums per parameter.
std::unique_ptr<const Optimizer> make_lamb(const deck::Optimizer& deck);

/// Returns the factor of a parameter's step from two squared norms: the norm of its weights divided
/// by the norm of its direction, clamped to [0.01, 10]. Returns 1 if either norm is 0.
double trust_ratio(double weight_squares, double direction_squares);

// Muon (Jordan et al., "Muon: an optimizer for hidden layers", github.com/KellerJordan/Muon) with
// the scale and weight decay of Liu et al., "Muon is scalable for LLM training"
// (arXiv 2502.16982), with which AdamW's learning rate and decay can be used:
//   B = mu B + (1 - mu) g;  u = (1 - mu) g + mu B with Nesterov's form, else B
//   X = Newton-Schulz(u);  w = w (1 - lr decay) - lr 0.2 sqrt(max(rows, columns)) X
// for the hidden matrices that the model's table of parameters names. All other parameters are
// updated by AdamW with the same lr and decay.

/// Makes Muon with the deck's momentum and nesterov for hidden matrices, beta1, beta2 and eps for
/// other parameters, and weight_decay. K = 8 bytes per element of a hidden matrix, otherwise 12.
std::unique_ptr<const Optimizer> make_muon(const deck::Optimizer& deck);

// NorMuon (Li et al., arXiv 2510.05491, algorithm 1): Muon with a second moment of each output,
// over its inputs, of the orthogonalized matrix:
//   v = b2 v + (1 - b2) mean(X^2);  O = X / (sqrt(v) + eps)
//   w = w (1 - lr decay) - lr 0.2 sqrt(rows columns) O / |O|

/// Makes NorMuon with Muon's settings; beta2 and eps are also those of its outputs. K is Muon's,
/// and 4 bytes per output. Its two passes add up 16 bytes per output. It runs only on the host's
/// cores, as Adafactor.
std::unique_ptr<const Optimizer> make_normuon(const deck::Optimizer& deck, param::Axis outputs);

}  // namespace kzero::optim
