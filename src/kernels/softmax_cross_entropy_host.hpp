// Cross-entropy for hosts: one thread a row, which keeps the exponentials in place of its logits,
// as computing them again would cost more than memory within a core's caches. Contracts as in
// softmax_cross_entropy.hpp.
#pragma once

#include "kernels/softmax_cross_entropy.hpp"

namespace kzero::kernels::host {

void cross_entropy_forward(const Execution& exec, StridedMatrix<const float> logits,
                           Vector<const Token> targets, Vector<float> losses);

template <class T>
void cross_entropy_with_gradient(const Execution& exec, StridedMatrix<float> logits,
                                 Vector<const Token> targets, float scale, Vector<float> losses,
                                 StridedMatrix<T> dlogits);

void partial_softmax(const Execution& exec, StridedMatrix<float> logits, Index first_token,
                     Vector<const Token> targets, Matrix<float> partial);

template <class T>
void cross_entropy_of_partials_with_gradient(const Execution& exec,
                                             const PartialSoftmaxes& partials,
                                             const SplitLogits& logits, Vector<const Token> targets,
                                             float scale, Vector<float> losses,
                                             StridedMatrix<T> dlogits);

}  // namespace kzero::kernels::host
