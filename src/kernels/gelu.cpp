#include "kernels/gelu.hpp"

#include "kernels/sigmoid.hpp"

namespace kzero::kernels {

namespace {

constexpr float slope = 2 * 0.7978845608F;  // 2 sqrt(2 / pi)
constexpr float cubic = 0.044715F;

/// The factor of x in the tanh form: (1 + tanh(z / 2)) / 2 = sigmoid(z).
template <class V>
KOKKOS_INLINE_FUNCTION Sigmoid<V> factor(V x) {
  return Sigmoid<V>(slope * (x + cubic * x * x * x));
}

}  // namespace

template <class T>
void gelu_forward(const Execution& exec, Matrix<const T> h, Matrix<T> g) {
  const Index width = h.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::gelu_forward", Policy(exec, static_cast<int>(h.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const T* in = &h(team.league_rank(), 0);
        T* out = &g(team.league_rank(), 0);
        const auto gelu = [](auto x) { return x * factor(x).value; };
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
          const auto s = factor(x);
          const auto inner = slope * (1.0F + 3.0F * cubic * x * x);
          return dg_x * s.value * (1.0F + x * s.complement * inner);
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
