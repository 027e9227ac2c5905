// Softmax cross-entropy and its gradient over a chunk of logits, so that the head never needs the
// logits of the entire batch. There may be gaps between the rows of logits and of their gradient.
// The gaps are neither read nor written. A negative number means that a row has no target: its loss
// and its gradient are 0.
#pragma once

#include <type_traits>

#include "kernels/row.hpp"
#include "tensor/view.hpp"

namespace kzero::kernels {

using tensor::StridedMatrix;

/// One rank's part of the softmax of a row of logits whose columns are split over tensor ranks.
/// Three floats per row: the largest of its logits, the sum of exp(logit - largest), and the
/// target's logit, or 0 if another rank has it. All are 0 in a row without a target.
inline constexpr Index partial_softmax_width = 3;

/// The partial softmaxes [C,3] of all tensor ranks, in rank order: values [ranks * C,3].
struct PartialSoftmaxes {
  Matrix<const float> values;
  Index ranks = 1;
  Index rank = 0;  // this rank's place in the order
};

/// This rank's columns of a chunk of logits [C,v], for tokens from `first_token` on, as left by
/// CrossEntropyRows::partial_softmax.
struct SplitLogits {
  StridedMatrix<const float> values;
  Index first_token = 0;
};

/// The loss whose gradient is computed. Each target adds scale * weight * (cross-entropy + z_loss *
/// log(Z)^2). Z is the sum of exp(logits) of its row. The second term keeps log(Z) near 0
/// (Chowdhery et al., "PaLM", arXiv 2204.02311, section 5).
struct LossTerms {
  float scale = 1;
  float z_loss = 0;
  const float* weights = nullptr;          // of each row, of any sign; null: all are 1
  const float* softmax_factors = nullptr;  // of each row; null: those of the loss above

  /// The terms of rows from `first` on.
  KOKKOS_INLINE_FUNCTION LossTerms from_row(Index first) const {
    return {scale, z_loss, weights == nullptr ? nullptr : weights + first,
            softmax_factors == nullptr ? nullptr : softmax_factors + first};
  }

  /// The terms of row i, with its weight in the scale.
  KOKKOS_INLINE_FUNCTION LossTerms of_row(Index i) const {
    return {weights == nullptr ? scale : scale * weights[i], z_loss, nullptr,
            softmax_factors == nullptr ? nullptr : softmax_factors + i};
  }

  /// The factor on a row's softmax in the gradient: d log(Z)^2 / d logits = 2 log(Z) softmax.
  /// Equals scale without the second term.
  KOKKOS_INLINE_FUNCTION float of_softmax(float log_z) const {
    return softmax_factors == nullptr ? scale * (1 + 2 * z_loss * log_z) : *softmax_factors;
  }
};

// The ways to compute a row. RowByThread: a host thread uses vector instructions. RowByTeam: a team
// of a device's threads reads the logits once for the softmax (softmax_row.hpp) and once for the
// gradient. Hosts also have RowByTeam, for tests.
struct RowByThread {};
struct RowByTeam {};

/// The kernels for one of these ways. Losses are natural logarithms. Logits are in fp32.
template <class Way>
struct CrossEntropyBy {
  /// Computes losses [C] = log(sum(exp(logits))) - logits[target]; logits [C,V], targets [C].
  static void forward(const Execution& exec, StridedMatrix<const float> logits,
                      Vector<const Token> targets, Vector<float> losses);

  /// Computes the losses as above and the gradient dlogits [C,V] of the loss that `terms` describe.
  /// The losses never contain the z-loss. dlogits may be the logits themselves if T is float.
  /// Otherwise the logits may be overwritten. Columns of dlogits beyond V are set to 0.
  template <class T>
  static void with_gradient(const Execution& exec, StridedMatrix<float> logits,
                            Vector<const Token> targets, const LossTerms& terms,
                            Vector<float> losses, StridedMatrix<T> dlogits);

  /// Computes partial [C,3] of logits [C,v] for tokens from `first_token` on. Leaves the logits in
  /// the form that of_partials_with_gradient expects. 1 <= v.
  static void partial_softmax(const Execution& exec, StridedMatrix<float> logits, Index first_token,
                              Vector<const Token> targets, Matrix<float> partial);

  /// Computes the losses [C] from every rank's partial softmaxes, and this rank's columns of
  /// dlogits [C,v], as with_gradient does. dlogits may be the logits themselves if T is float.
  template <class T>
  static void of_partials_with_gradient(const Execution& exec, const PartialSoftmaxes& partials,
                                        const SplitLogits& logits, Vector<const Token> targets,
                                        const LossTerms& terms, Vector<float> losses,
                                        StridedMatrix<T> dlogits);
};

/// The kernels of this build.
using CrossEntropyRows =
    CrossEntropyBy<std::conditional_t<tensor::on_host, RowByThread, RowByTeam>>;

/// Computes the losses [C] from every rank's partial softmaxes.
void cross_entropy_of_partials(const Execution& exec, const PartialSoftmaxes& partials,
                               Vector<const Token> targets, Vector<float> losses);

/// A row's softmax over all ranks: exp(logit) / total, with logits relative to `largest`.
struct WholeRow {
  float largest, total, at_target;

  KOKKOS_INLINE_FUNCTION WholeRow(const PartialSoftmaxes& all, Index i)
      : largest(all.values(i, 0)), total(0), at_target(0) {
    const Index rows = all.values.extent(0) / all.ranks;
    for (Index r = 1; r < all.ranks; ++r)
      largest = Kokkos::fmax(largest, all.values(r * rows + i, 0));
    for (Index r = 0; r < all.ranks; ++r) {
      const Index at = r * rows + i;
      // Several kernels compute this sum. If compilers chose, they might fuse it in some only.
      total = Kokkos::fma(all.values(at, 1), Kokkos::exp(all.values(at, 0) - largest), total);
      at_target += all.values(at, 2);
    }
  }
  KOKKOS_INLINE_FUNCTION float log_z() const { return largest + Kokkos::log(total); }
  KOKKOS_INLINE_FUNCTION float loss() const { return log_z() - at_target; }
};

}  // namespace kzero::kernels
