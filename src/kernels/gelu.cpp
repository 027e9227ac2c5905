#include "kernels/gelu.hpp"

#include "kernels/exponential.hpp"

namespace kzero::kernels {

namespace {

constexpr float root_two_over_pi = 0.7978845608F;
constexpr float cubic = 0.044715F;

}  // namespace

template <class T>
void gelu_forward(const Execution& exec, Matrix<const T> h, Matrix<T> g) {
  const Index width = h.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::gelu_forward", Policy(exec, static_cast<int>(h.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const T* in = &h(team.league_rank(), 0);
        T* out = &g(team.league_rank(), 0);
        const auto gelu = [](float x) {
          const float t = hyperbolic_tangent(root_two_over_pi * (x + cubic * x * x * x));
          return 0.5F * x * (1.0F + t);
        };
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
        const auto gradient = [](float x, float dg_x) {
          const float t = hyperbolic_tangent(root_two_over_pi * (x + cubic * x * x * x));
          const float inner = root_two_over_pi * (1.0F + 3.0F * cubic * x * x);
          return dg_x * (0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * inner);
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
