// Cross-entropy with one team per row.
#include "kernels/softmax_cross_entropy.hpp"

#include "kernels/softmax_row.hpp"

namespace kzero::kernels {

namespace {

constexpr int gradient_threads = 512;  // of a team that reads a row once

/// Sets the columns [first,end) of a row to 0.
template <class T>
KOKKOS_INLINE_FUNCTION void clear_columns(const Team& team, Index first, Index end, T* out) {
  for_each(team, end - first, [=](Index j) { out[first + j] = static_cast<T>(0.0F); });
}

/// The loss and the gradient [n] of a row without a target.
template <class T>
KOKKOS_INLINE_FUNCTION void clear_row(const Team& team, float& loss, Index n, T* out) {
  clear_columns(team, 0, n, out);
  float* of_row = &loss;
  Kokkos::single(Kokkos::PerTeam(team), [=]() { *of_row = 0; });
}

}  // namespace

template <>
void CrossEntropyBy<RowByTeam>::forward(const Execution& exec, StridedMatrix<const float> logits,
                                        Vector<const Token> targets, Vector<float> losses) {
  const Index vocab = logits.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::cross_entropy_forward", softmax_rows<2>(exec, logits.extent(0)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank();
        if (targets(i) < 0) {
          Kokkos::single(Kokkos::PerTeam(team), [=]() { losses(i) = 0; });
          return;
        }
        const float* row = &logits(i, 0);
        const SoftmaxSum softmax = row_softmax(team, vocab, row);
        Kokkos::single(Kokkos::PerTeam(team), [=]() {
          losses(i) = softmax.largest + Kokkos::log(softmax.total) - row[targets(i)];
        });
      });
}

template <>
template <class T>
void CrossEntropyBy<RowByTeam>::with_gradient(const Execution& exec, StridedMatrix<float> logits,
                                              Vector<const Token> targets, const LossTerms& terms,
                                              Vector<float> losses, StridedMatrix<T> dlogits) {
  const Index vocab = logits.extent(1), columns = dlogits.extent(1);
  const LossTerms all = terms;
  Kokkos::parallel_for(
      "kzero::kernels::cross_entropy_with_gradient", softmax_rows<1>(exec, logits.extent(0)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank();
        const float* row = &logits(i, 0);
        T* out = &dlogits(i, 0);
        const Index target = targets(i);
        if (target < 0) {
          clear_row(team, losses(i), columns, out);
          return;
        }
        const float at_target = row[target];  // before the row changes: row_softmax has barriers
        const LossTerms of = all.of_row(i);
        const SoftmaxSum softmax = row_softmax(team, vocab, row);
        const float largest = softmax.largest, log_z = largest + Kokkos::log(softmax.total);
        const float factor = of.of_softmax(log_z) / softmax.total;
        const auto scaled = [=](auto x) { return exponential(x - largest) * factor; };
        map(team, vocab, out, scaled, row);
        clear_columns(team, vocab, columns, out);
        team.team_barrier();
        Kokkos::single(Kokkos::PerTeam(team), [=]() {
          losses(i) = log_z - at_target;
          out[target] = static_cast<T>(scaled(at_target) - of.scale);
        });
      });
}

template <>
void CrossEntropyBy<RowByTeam>::partial_softmax(const Execution& exec, StridedMatrix<float> logits,
                                                Index first_token, Vector<const Token> targets,
                                                Matrix<float> partial) {
  const Index held = logits.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::partial_softmax", softmax_rows<2>(exec, logits.extent(0)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank(), target = targets(i) - first_token;
        if (targets(i) < 0) {
          for_each(team, partial_softmax_width, [=](Index j) { partial(i, j) = 0; });
          return;
        }
        const float* row = &logits(i, 0);
        const SoftmaxSum softmax = row_softmax(team, held, row);
        Kokkos::single(Kokkos::PerTeam(team), [=]() {
          partial(i, 0) = softmax.largest;
          partial(i, 1) = softmax.total;
          partial(i, 2) = target >= 0 && target < held ? row[target] : 0.0F;
        });
      });
}

template <>
template <class T>
void CrossEntropyBy<RowByTeam>::of_partials_with_gradient(
    const Execution& exec, const PartialSoftmaxes& partials, const SplitLogits& logits,
    Vector<const Token> targets, const LossTerms& terms, Vector<float> losses,
    StridedMatrix<T> dlogits) {
  const Index held = logits.values.extent(1), columns = dlogits.extent(1);
  const LossTerms all = terms;
  Kokkos::parallel_for(
      "kzero::kernels::cross_entropy_of_partials_with_gradient",
      Policy(exec, static_cast<int>(logits.values.extent(0)), team_size(gradient_threads), 1),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank(), target = targets(i) - logits.first_token;
        const float* row = &logits.values(i, 0);
        T* out = &dlogits(i, 0);
        if (targets(i) < 0) {
          clear_row(team, losses(i), columns, out);
          return;
        }
        const LossTerms of = all.of_row(i);
        const WholeRow whole(partials, i);
        const float largest = whole.largest, factor = of.of_softmax(whole.log_z()) / whole.total;
        const bool mine = target >= 0 && target < held;
        const auto scaled = [=](auto x) { return exponential(x - largest) * factor; };
        map(team, held, out, scaled, row);
        clear_columns(team, held, columns, out);
        team.team_barrier();
        Kokkos::single(Kokkos::PerTeam(team), [=]() {
          losses(i) = whole.loss();
          if (mine) out[target] = static_cast<T>(scaled(whole.at_target) - of.scale);
        });
      });
}

#define KZERO_INSTANTIATE(T)                                                              \
  template void CrossEntropyBy<RowByTeam>::with_gradient<T>(                              \
      const Execution&, StridedMatrix<float>, Vector<const Token>, const LossTerms&,      \
      Vector<float>, StridedMatrix<T>);                                                   \
  template void CrossEntropyBy<RowByTeam>::of_partials_with_gradient<T>(                  \
      const Execution&, const PartialSoftmaxes&, const SplitLogits&, Vector<const Token>, \
      const LossTerms&, Vector<float>, StridedMatrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
