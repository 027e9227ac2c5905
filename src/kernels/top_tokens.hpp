// The most probable tokens of rows of logits, which teach a student (distillation.hpp). Of equal
// logits, that of the lower token comes first.
#pragma once

#include "kernels/softmax_cross_entropy.hpp"
#include "tensor/view.hpp"

namespace kzero::kernels {

/// The k largest logits of each row and their tokens, largest first [rows,k]. Where a rank has
/// fewer columns, the last are minus infinity.
struct Candidates {
  Matrix<Token> tokens;
  Matrix<float> logits;
};

/// Finds the candidates [C,k] in logits [C,v] of the tokens from `first_token` on. Leaves those of
/// rows without a target. NaN is never among them.
void find_candidates(const Execution& exec, StridedMatrix<const float> logits, Index first_token,
                     Vector<const Token> targets, const Candidates& candidates);

/// The most probable tokens of each row [C,k], most probable first, and ln p of each, at most 0.
/// Rows without a target have zeros.
struct TopTokens {
  Matrix<Token> tokens;
  Matrix<float> ln_p;
};

/// Computes them from the candidates [ranks * C,k] and the partial softmaxes of all ranks.
void merge_candidates(const Execution& exec, const Candidates& candidates,
                      const PartialSoftmaxes& softmaxes, Vector<const Token> targets,
                      const TopTokens& top);

}  // namespace kzero::kernels
