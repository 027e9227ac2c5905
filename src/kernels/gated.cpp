#include "kernels/gated.hpp"

#include "kernels/activations.hpp"

namespace kzero::kernels {

namespace {

template <class Activation, class T>
void gated_forward(const Execution& exec, const char* label, Matrix<const T> gate_up, Matrix<T> y) {
  const Index width = y.extent(1);
  Kokkos::parallel_for(
      label, Policy(exec, static_cast<int>(y.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const T* gate = &gate_up(team.league_rank(), 0);
        T* out = &y(team.league_rank(), 0);
        const auto product = [](auto g, auto u) { return g * Activation::factor(g).value * u; };
        map(team, width, out, product, gate, gate + width);
      });
}

template <class Activation, class T>
void gated_backward(const Execution& exec, const char* label, Matrix<const T> gate_up,
                    Matrix<T> d) {
  const Index width = d.extent(1) / 2;
  Kokkos::parallel_for(
      label, Policy(exec, static_cast<int>(d.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const T* gate = &gate_up(team.league_rank(), 0);
        T* d_gate = &d(team.league_rank(), 0);
        const auto gradients = [](auto g, auto u, auto dy) {
          using V = decltype(g);
          const auto s = Activation::factor(g);
          const V scaled = dy * s.value;
          return Pair<V>{scaled * u * (1.0F + Activation::excess(g, s)), scaled * g};
        };
        map_pairs(team, width, d_gate, d_gate + width, gradients, gate, gate + width, d_gate);
      });
}

}  // namespace

template <class T>
void swiglu_forward(const Execution& exec, Matrix<const T> gate_up, Matrix<T> y) {
  gated_forward<Silu>(exec, "kzero::kernels::swiglu_forward", gate_up, y);
}

template <class T>
void swiglu_backward(const Execution& exec, Matrix<const T> gate_up, Matrix<T> d) {
  gated_backward<Silu>(exec, "kzero::kernels::swiglu_backward", gate_up, d);
}

template <class T>
void geglu_forward(const Execution& exec, Matrix<const T> gate_up, Matrix<T> y) {
  gated_forward<Gelu>(exec, "kzero::kernels::geglu_forward", gate_up, y);
}

template <class T>
void geglu_backward(const Execution& exec, Matrix<const T> gate_up, Matrix<T> d) {
  gated_backward<Gelu>(exec, "kzero::kernels::geglu_backward", gate_up, d);
}

#define KZERO_INSTANTIATE(T)                                                      \
  template void swiglu_forward<T>(const Execution&, Matrix<const T>, Matrix<T>);  \
  template void swiglu_backward<T>(const Execution&, Matrix<const T>, Matrix<T>); \
  template void geglu_forward<T>(const Execution&, Matrix<const T>, Matrix<T>);   \
  template void geglu_backward<T>(const Execution&, Matrix<const T>, Matrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
