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
        for_each(team, vocab, [=](Index j) { row[j] = exponential(row[j] - largest); });
        team.team_barrier();
        const float total = sum(team, vocab, [=](Index j) { return row[j]; });
        const float factor = scale / total;
        const float probability = row[target];
        team.team_barrier();
        for_each(team, vocab, [=](Index j) { out[j] = static_cast<T>(row[j] * factor); });
        team.team_barrier();
        Kokkos::single(Kokkos::PerTeam(team), [=]() {
          losses(i) = largest + Kokkos::log(total) - at_target;
          out[target] = static_cast<T>(probability * factor - scale);
        });
      });
}

#define KZERO_INSTANTIATE(T)                    \
  template void cross_entropy_with_gradient<T>( \
      const Execution&, Matrix<float>, Vector<const Token>, float, Vector<float>, Matrix<T>);
KZERO_INSTANTIATE(float)
KZERO_INSTANTIATE(bf16)
KZERO_INSTANTIATE(fp16)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
