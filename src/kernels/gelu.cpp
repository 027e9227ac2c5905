#include "kernels/gelu.hpp"

#include "kernels/activations.hpp"

namespace kzero::kernels {

template <class T>
void gelu_forward(const Execution& exec, Matrix<const T> h, Matrix<T> g) {
  const Index width = h.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::gelu_forward", Policy(exec, static_cast<int>(h.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const T* in = &h(team.league_rank(), 0);
        T* out = &g(team.league_rank(), 0);
        const auto gelu = [](auto x) { return x * Gelu::factor(x).value; };
        map(team, width, out, gelu, in);
      });
}

template <class T>
void gelu_backward(const Execution& exec, Matrix<const T> h, Matrix<T> dg) {
  const Index width = h.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::gelu_backward", Policy(exec, static_cast<int>(h.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const T* in = &h(team.league_rank(), 0);
        T* d = &dg(team.league_rank(), 0);
        const auto gradient = [](auto x, auto dg_x) {
          const auto s = Gelu::factor(x);
          return dg_x * s.value * (1.0F + Gelu::excess(x, s));
        };
        map(team, width, d, gradient, in, d);
      });
}

#define KZERO_INSTANTIATE(T)                                                   \
  template void gelu_forward<T>(const Execution&, Matrix<const T>, Matrix<T>); \
  template void gelu_backward<T>(const Execution&, Matrix<const T>, Matrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
