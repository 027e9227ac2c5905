#include "kernels/softmax_cross_entropy.hpp"

#include "kernels/exponential.hpp"

namespace kzero::kernels {

void cross_entropy_forward(const Execution& exec, Matrix<const float> logits,
                           Vector<const Token> targets, Vector<float> losses) {
  const Index vocab = logits.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::cross_entropy_forward",
      Policy(exec, static_cast<int>(logits.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank();
        const float* row = &logits(i, 0);
        const float largest = max(team, vocab, [=](Index j) { return row[j]; });
        const float total =
            sum(team, vocab, [=](Index j) { return exponential(row[j] - largest); });
        Kokkos::single(Kokkos::PerTeam(team),
                       [=]() { losses(i) = largest + Kokkos::log(total) - row[targets(i)]; });
      });
}

template <class T>
void cross_entropy_with_gradient(const Execution& exec, Matrix<float> logits,
                                 Vector<const Token> targets, float scale, Vector<float> losses,
                                 Matrix<T> dlogits) {
  const Index vocab = logits.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::cross_entropy_with_gradient",
      Policy(exec, static_cast<int>(logits.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank();
        float* row = &logits(i, 0);
        T* out = &dlogits(i, 0);
        const Index target = targets(i);
        const float largest = max(team, vocab, [=](Index j) { return row[j]; });
        const float at_target = row[target];
        team.team_barrier();  // at_target is read before the row changes
        const auto relative = [=](auto x) { return exponential(x - largest); };
        map(team, vocab, row, relative, row);
        team.team_barrier();
        const float total = sum(team, vocab, [=](Index j) { return row[j]; });
        const float factor = scale / total;
        const float probability = row[target];
        team.team_barrier();
        const auto scaled = [=](auto x) { return x * factor; };
        map(team, vocab, out, scaled, row);
        team.team_barrier();
        Kokkos::single(Kokkos::PerTeam(team), [=]() {
          losses(i) = largest + Kokkos::log(total) - at_target;
          out[target] = static_cast<T>(probability * factor - scale);
        });
      });
}

void partial_softmax(const Execution& exec, Matrix<float> logits, Index first_token,
                     Vector<const Token> targets, Matrix<float> partial) {
  const Index held = logits.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::partial_softmax",
      Policy(exec, static_cast<int>(logits.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank(), target = targets(i) - first_token;
        float* row = &logits(i, 0);
        const float largest = max(team, held, [=](Index j) { return row[j]; });
        const float at_target = target >= 0 && target < held ? row[target] : 0.0F;
        team.team_barrier();  // at_target is read before the row changes
        const auto relative = [=](auto x) { return exponential(x - largest); };
        map(team, held, row, relative, row);
        team.team_barrier();
        const float total = sum(team, held, [=](Index j) { return row[j]; });
        Kokkos::single(Kokkos::PerTeam(team), [=]() {
          partial(i, 0) = largest;
          partial(i, 1) = total;
          partial(i, 2) = at_target;
        });
      });
}

namespace {

/// A row's softmax over all ranks: exp(logit) / total with logits relative to `largest`.
struct WholeRow {
  float largest, total, at_target;
};

KOKKOS_INLINE_FUNCTION WholeRow whole_row(const PartialSoftmaxes& all, Index i) {
  const Matrix<const float>& partials = all.values;
  const Index ranks = all.ranks, rows = partials.extent(0) / ranks;
  WholeRow whole{partials(i, 0), 0, 0};
  for (Index r = 1; r < ranks; ++r)
    whole.largest = Kokkos::fmax(whole.largest, partials(r * rows + i, 0));
  for (Index r = 0; r < ranks; ++r) {
    const Index at = r * rows + i;
    whole.total += partials(at, 1) * Kokkos::exp(partials(at, 0) - whole.largest);
    whole.at_target += partials(at, 2);
  }
  return whole;
}

KOKKOS_INLINE_FUNCTION float loss_of(const WholeRow& row) {
  return row.largest + Kokkos::log(row.total) - row.at_target;
}

}  // namespace

void cross_entropy_of_partials(const Execution& exec, const PartialSoftmaxes& partials,
                               Vector<float> losses) {
  Kokkos::parallel_for(
      "kzero::kernels::cross_entropy_of_partials", tensor::Range(exec, 0, losses.extent(0)),
      KOKKOS_LAMBDA(Index i) { losses(i) = loss_of(whole_row(partials, i)); });
}

template <class T>
void cross_entropy_of_partials_with_gradient(const Execution& exec,
                                             const PartialSoftmaxes& partials,
                                             const SplitLogits& logits, Vector<const Token> targets,
                                             float scale, Vector<float> losses, Matrix<T> dlogits) {
  const Index held = logits.exponentials.extent(1), rows = logits.exponentials.extent(0);
  Kokkos::parallel_for(
      "kzero::kernels::cross_entropy_of_partials_with_gradient",
      Policy(exec, static_cast<int>(rows), Kokkos::AUTO), KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank(), target = targets(i) - logits.first_token;
        const float* row = &logits.exponentials(i, 0);
        T* out = &dlogits(i, 0);
        const WholeRow whole = whole_row(partials, i);
        const float largest = partials.values(partials.rank * rows + i, 0);
        const float factor = scale * Kokkos::exp(largest - whole.largest) / whole.total;
        const bool mine = target >= 0 && target < held;
        const float probability = mine ? row[target] : 0.0F;
        team.team_barrier();
        const auto scaled = [=](auto x) { return x * factor; };
        map(team, held, out, scaled, row);
        team.team_barrier();
        Kokkos::single(Kokkos::PerTeam(team), [=]() {
          losses(i) = loss_of(whole);
          if (mine) out[target] = static_cast<T>(probability * factor - scale);
        });
      });
}

#define KZERO_INSTANTIATE(T)                                                                     \
  template void cross_entropy_with_gradient<T>(                                                  \
      const Execution&, Matrix<float>, Vector<const Token>, float, Vector<float>, Matrix<T>);    \
  template void cross_entropy_of_partials_with_gradient<T>(                                      \
      const Execution&, const PartialSoftmaxes&, const SplitLogits&, Vector<const Token>, float, \
      Vector<float>, Matrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
