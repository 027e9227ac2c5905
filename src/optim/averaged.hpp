// An exponential moving average of the weights (Polyak and Juditsky, SIAM J. Control Optim. 30,
// 1992; as an exponential average: Tarvainen and Valpola, arXiv 1703.01780). It is one more state
// array, so memory, offload and checkpoints treat it as the optimizer's other state.
#pragma once

#include "optim/optimizer.hpp"

namespace kzero::optim {

/// Adds the array param::averaged_weights to the state of `rule`. After each update it becomes
///   e = e + (1 - decay) (w - e)
/// of the new master weights w, in fp32. Before the first update it is set to the weights from
/// which training started.
std::unique_ptr<const Optimizer> make_averaged(std::unique_ptr<const Optimizer> rule, double decay);

}  // namespace kzero::optim
