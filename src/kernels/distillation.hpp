// The loss of a student that learns from the most probable tokens of a teacher (Hinton et al.,
// arXiv 1503.02531). p are the teacher's probabilities and q the student's. With R, all tokens that
// are not among the teacher's:
//   KL = sum over the teacher's tokens of p (ln p - ln q) + p(R) (ln p(R) - ln q(R))
//   loss of a row = (1 - weight) (-ln q[target]) + weight KL
// The logits of the teacher's tokens are taken out of a row, so that the kernels of
// softmax_cross_entropy.hpp see those of R alone, and q(R) is a sum without cancellation. A row's
// softmax then has two parts for each tensor rank. All sums have a fixed order.
#pragma once

#include "kernels/softmax_cross_entropy.hpp"
#include "tensor/view.hpp"

namespace kzero::kernels {

/// A teacher's tokens at each row, most probable first, and ln p of each [rows,k]. Without rows,
/// there is no teacher.
struct TeacherRows {
  Matrix<const Token> tokens;
  Matrix<const float> ln_p;
  float weight = 0;  // of KL in the loss
};

/// The parts of a tensor rank's softmax: that of R, then that of the teacher's tokens.
inline constexpr Index softmax_parts = 2;

/// What the parts of KL over a rank's teacher's tokens have for each row: the sum of
/// p (ln p - below), where `below` is the logit less the largest of these logits, and the sum of p.
inline constexpr Index divergence_width = 2;

/// Scratch memory for a chunk of C rows.
struct DistillationRows {
  Matrix<float> logits;           // [C,k] of the teacher's tokens, if this rank has them
  Vector<Token> targets;          // [C] without those that are a teacher's token
  Vector<float> softmax_factors;  // [C] of the gradient of R's logits
};

/// Moves the logits of the teacher's tokens out of logits [C,v], which are those of tokens from
/// `first_token` on, and computes their partial softmax [C,3] and their parts of KL [C,2]. Then
/// partial_softmax of the logits, with the targets of `rows`, gives the part of R.
void take_teachers_logits(const Execution& exec, const TeacherRows& teacher,
                          const StridedMatrix<float>& logits, Index first_token,
                          Vector<const Token> targets, const DistillationRows& rows,
                          Matrix<float> partial, Matrix<float> divergence);

/// Computes KL [C] of each row, 0 without a target, and the softmax factors of `rows`, from the
/// parts of every tensor rank's softmax and of KL [ranks * C,2]. Without `has_rest` the teacher's
/// tokens are the vocabulary, and R is empty. `terms` are those of the chunk's rows.
void divergences(const Execution& exec, const TeacherRows& teacher,
                 const PartialSoftmaxes& softmaxes, Matrix<const float> divergence, bool has_rest,
                 Vector<const Token> targets, const LossTerms& terms, const DistillationRows& rows,
                 Vector<float> kl);

/// The terms with which of_partials_with_gradient computes the gradient of R's logits, for the
/// targets of `rows`.
LossTerms terms_of_rest(const TeacherRows& teacher, const LossTerms& terms,
                        const DistillationRows& rows);

/// Sets the columns of the teacher's tokens in the gradient dlogits [C,v].
template <class T>
void set_teachers_gradient(const Execution& exec, const TeacherRows& teacher,
                           const PartialSoftmaxes& softmaxes, Index first_token, Index held,
                           Vector<const Token> targets, const LossTerms& terms,
                           const DistillationRows& rows, const StridedMatrix<T>& dlogits);

}  // namespace kzero::kernels
