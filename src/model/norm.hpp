// LayerNorm's backward as blocks and the head need it: behind a GEMM whose input gradient is a sum
// over the tensor group, and with parameter gradients that, in sequence parallelism, are sums over
// the group too.
#pragma once

#include "kernels/layernorm.hpp"
#include "model/context.hpp"

namespace kzero::model {

/// c.hidden_grad [N,D] holds this rank's partial sum of the gradient of LayerNorm's output. x and
/// dx [n,D] have the stream's rows; dweight and dbias are one behind the other in memory.
/// Collective over the tensor group.
template <class T>
void norm_backward(const Context<T>& c, const kernels::LayerNormInput<T>& input,
                   const kernels::LayerNormGradients<T>& gradients);

}  // namespace kzero::model
