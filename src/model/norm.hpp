// LayerNorm's backward as blocks and the head need it: behind a product whose input gradient is a
// sum over the tensor group, and with parameter gradients that, in sequence parallelism, are one
// too.
#pragma once

#include "kernels/row_sums.hpp"
#include "model/context.hpp"

namespace kzero::model {

/// c.hidden_grad [N,D] holds this rank's share of the gradient of LayerNorm's output. x, dx [n,D]
/// have the stream's rows; dx is written or added to as `dx_mode` says, dweight and dbias, one
/// behind the other in memory, as `update` says. Collective over the tensor group.
template <class T>
void norm_backward(const Context<T>& c, Matrix<const T> x, Vector<const T> weight,
                   Vector<const float> mean, Vector<const float> rstd, kernels::Update dx_mode,
                   Matrix<T> dx, kernels::Update update, Vector<T> dweight, Vector<T> dbias);

}  // namespace kzero::model
