#include "kernels/swiglu.hpp"

#include "kernels/sigmoid.hpp"

namespace kzero::kernels {

template <class T>
void swiglu_forward(const Execution& exec, Matrix<const T> gate_up, Matrix<T> y) {
  const Index width = y.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::swiglu_forward", Policy(exec, static_cast<int>(y.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const T* gate = &gate_up(team.league_rank(), 0);
        T* out = &y(team.league_rank(), 0);
        const auto swiglu = [](auto g, auto u) { return g * Sigmoid<decltype(g)>(g).value * u; };
        map(team, width, out, swiglu, gate, gate + width);
      });
}

template <class T>
void swiglu_backward(const Execution& exec, Matrix<const T> gate_up, Matrix<T> d) {
  const Index width = d.extent(1) / 2;
  Kokkos::parallel_for(
      "kzero::kernels::swiglu_backward", Policy(exec, static_cast<int>(d.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const T* gate = &gate_up(team.league_rank(), 0);
        T* d_gate = &d(team.league_rank(), 0);
        const auto gradients = [](auto g, auto u, auto dy) {
          using V = decltype(g);
          const Sigmoid<V> s(g);
          const V scaled = dy * s.value;
          return Pair<V>{scaled * u * (1.0F + g * s.complement), scaled * g};
        };
        map_pairs(team, width, d_gate, d_gate + width, gradients, gate, gate + width, d_gate);
      });
}

#define KZERO_INSTANTIATE(T)                                                     \
  template void swiglu_forward<T>(const Execution&, Matrix<const T>, Matrix<T>); \
  template void swiglu_backward<T>(const Execution&, Matrix<const T>, Matrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
