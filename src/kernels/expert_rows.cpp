#include "kernels/expert_rows.hpp"

namespace kzero::kernels {

namespace {

Policy expert_rows_policy(const Execution& exec, std::size_t rows) {
  return {exec, static_cast<int>(rows), team_size(4), vector_length(32)};
}

}  // namespace

template <class T>
void gather_rows(const Execution& exec, Matrix<const T> x, Vector<const std::int32_t> choices,
                 Index per_token, Matrix<T> sorted) {
  const Index width = sorted.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::gather_rows", expert_rows_policy(exec, sorted.extent(0)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index r = team.league_rank(), choice = choices(r);
        T* out = &sorted(r, 0);
        if (choice < 0) {
          for_each(team, width, [=](Index j) { out[j] = static_cast<T>(0.0F); });
        } else {
          const T* row = &x(choice / per_token, 0);
          for_each(team, width, [=](Index j) { out[j] = row[j]; });
        }
      });
}

template <class T>
void combine_rows(const Execution& exec, Matrix<const T> sorted, Matrix<const std::int32_t> places,
                  Matrix<const float> gates, Matrix<const T> addend, Matrix<T> y) {
  const Index width = y.extent(1), chosen = places.extent(1);
  const bool weighs = gates.size() > 0, adds = addend.size() > 0;
  Kokkos::parallel_for(
      "kzero::kernels::combine_rows", expert_rows_policy(exec, y.extent(0)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank();
        for_each(team, width, [=](Index c) {
          float total = adds ? static_cast<float>(addend(i, c)) : 0.0F;
          for (Index j = 0; j < chosen; ++j) {
            const float term = static_cast<float>(sorted(places(i, j), c));
            total += weighs ? gates(i, j) * term : term;
          }
          y(i, c) = static_cast<T>(total);
        });
      });
}

template <class T>
void gate_backward(const Execution& exec, Vector<const std::int32_t> choices,
                   Matrix<const float> gates, Matrix<T> activated, Matrix<T> d,
                   Matrix<float> dgates) {
  const Index width = activated.extent(1);
  const float* gate_of = gates.data();
  float* dgate_of = dgates.data();
  Kokkos::parallel_for(
      "kzero::kernels::gate_backward", expert_rows_policy(exec, activated.extent(0)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index r = team.league_rank(), choice = choices(r);
        if (choice < 0) return;
        T *a = &activated(r, 0), *dy = &d(r, 0);
        const float dgate = sum_of(
            team, width, [](float x, float y) { return x * y; }, static_cast<const T*>(a),
            static_cast<const T*>(dy));
        Kokkos::single(Kokkos::PerTeam(team), [&] { dgate_of[choice] = dgate; });
        const float gate = gate_of[choice];
        const auto weigh = [=](auto x, auto y) { return Pair<decltype(x)>{x * gate, y * gate}; };
        map_pairs(team, width, a, dy, weigh, static_cast<const T*>(a), static_cast<const T*>(dy));
      });
}

#define KZERO_INSTANTIATE(T)                                                                   \
  template void gather_rows<T>(const Execution&, Matrix<const T>, Vector<const std::int32_t>,  \
                               Index, Matrix<T>);                                              \
  template void combine_rows<T>(const Execution&, Matrix<const T>, Matrix<const std::int32_t>, \
                                Matrix<const float>, Matrix<const T>, Matrix<T>);              \
  template void gate_backward<T>(const Execution&, Vector<const std::int32_t>,                 \
                                 Matrix<const float>, Matrix<T>, Matrix<T>, Matrix<float>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
