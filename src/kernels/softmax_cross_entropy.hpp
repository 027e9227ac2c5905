// Softmax cross-entropy and its gradient in one pass over a chunk of logits, so that the head never
// needs the logits of the whole batch.
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

/// logits [C,V] in fp32; targets [C]; losses [C] = log(sum(exp(logits))) - logits[target], natural
/// log.
void cross_entropy_forward(const Execution& exec, Matrix<const float> logits,
                           Vector<const Token> targets, Vector<float> losses);

/// As above, and dlogits [C,V] = scale * (softmax(logits) - onehot(target)). dlogits may be logits
/// itself where T is float.
template <class T>
void cross_entropy_with_gradient(const Execution& exec, Matrix<float> logits,
                                 Vector<const Token> targets, float scale, Vector<float> losses,
                                 Matrix<T> dlogits);

}  // namespace kzero::kernels
