#include "kernels/softmax_cross_entropy_host.hpp"

#include "kernels/exponential.hpp"

namespace kzero::kernels::host {

void cross_entropy_forward(const Execution& exec, StridedMatrix<const float> logits,
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
void cross_entropy_with_gradient(const Execution& exec, StridedMatrix<float> logits,
                                 Vector<const Token> targets, float scale, Vector<float> losses,
                                 StridedMatrix<T> dlogits) {
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

void partial_softmax(const Execution& exec, StridedMatrix<float> logits, Index first_token,
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

template <class T>
void cross_entropy_of_partials_with_gradient(const Execution& exec,
                                             const PartialSoftmaxes& partials,
                                             const SplitLogits& logits, Vector<const Token> targets,
                                             float scale, Vector<float> losses,
                                             StridedMatrix<T> dlogits) {
  const Index held = logits.values.extent(1), rows = logits.values.extent(0);
  Kokkos::parallel_for(
      "kzero::kernels::cross_entropy_of_partials_with_gradient",
      Policy(exec, static_cast<int>(rows), Kokkos::AUTO), KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank(), target = targets(i) - logits.first_token;
        const float* row = &logits.values(i, 0);
        T* out = &dlogits(i, 0);
        const WholeRow whole(partials, i);
        const float largest = partials.values(partials.rank * rows + i, 0);
        const float factor = scale * Kokkos::exp(largest - whole.largest) / whole.total;
        const bool mine = target >= 0 && target < held;
        const float probability = mine ? row[target] : 0.0F;
        team.team_barrier();
        const auto scaled = [=](auto x) { return x * factor; };
        map(team, held, out, scaled, row);
        team.team_barrier();
        Kokkos::single(Kokkos::PerTeam(team), [=]() {
          losses(i) = whole.loss();
          if (mine) out[target] = static_cast<T>(probability * factor - scale);
        });
      });
}

#define KZERO_INSTANTIATE(T)                                                                     \
  template void cross_entropy_with_gradient<T>(const Execution&, StridedMatrix<float>,           \
                                               Vector<const Token>, float, Vector<float>,        \
                                               StridedMatrix<T>);                                \
  template void cross_entropy_of_partials_with_gradient<T>(                                      \
      const Execution&, const PartialSoftmaxes&, const SplitLogits&, Vector<const Token>, float, \
      Vector<float>, StridedMatrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels::host
