#include "kernels/xielu.hpp"

#include "kernels/sigmoid.hpp"

namespace kzero::kernels {

namespace {

constexpr float xielu_linear = 0.5F;

/// e^x - 1 - x without cancellation, for x <= 0.
KOKKOS_INLINE_FUNCTION float exponential_remainder(float x) {
  // Taylor's series up to the tenth power. At -0.5 the error is below 2e-11 of the value.
  float p = 2.75573192e-7F * x + 2.75573192e-6F;
  p = p * x + 2.48015873e-5F;
  p = p * x + 1.98412698e-4F;
  p = p * x + 1.38888889e-3F;
  p = p * x + 8.33333333e-3F;
  p = p * x + 4.16666667e-2F;
  p = p * x + 1.66666667e-1F;
  p = p * x + 0.5F;
  const float far = saturating_exponential(x) - 1.0F - x;
  return x > -0.5F ? p * x * x : far;
}

/// log(1 + e^x).
KOKKOS_INLINE_FUNCTION float softplus(float x) {
  return Kokkos::fmax(x, 0.0F) + Kokkos::log1p(Kokkos::exp(-Kokkos::fabs(x)));
}

/// The scales of both sides, and their derivatives by the parameters.
template <class T>
struct XieluScales {
  const T* parameters;

  KOKKOS_INLINE_FUNCTION float positive() const {
    return softplus(static_cast<float>(parameters[0]));
  }
  KOKKOS_INLINE_FUNCTION float negative() const {
    return xielu_linear + softplus(static_cast<float>(parameters[1]));
  }
  KOKKOS_INLINE_FUNCTION float derivative(int side) const {
    return Sigmoid<float>(static_cast<float>(parameters[side])).value;
  }
};

/// What a scale multiplies: u^2, or e^u - 1 - u.
KOKKOS_INLINE_FUNCTION float scaled_part(float u) {
  return u > 0 ? u * u : exponential_remainder(u);
}

/// Its derivative by u.
KOKKOS_INLINE_FUNCTION float xielu_slope(float u) {
  return u > 0 ? 2 * u : exponential_remainder(u) + u;
}

/// Computes the gradients of a row, and returns the sums of those of both scales in sums [2].
template <class T>
KOKKOS_INLINE_FUNCTION void xielu_row_backward(const Team& team, Index width, const T* u, T* d,
                                               float positive, float negative, float* sums) {
  const auto product = [=](Index j, bool is_positive) {
    const float x = static_cast<float>(u[j]);
    return (x > 0) == is_positive ? static_cast<float>(d[j]) * scaled_part(x) : 0.0F;
  };
  const float of_positive = sum(team, width, [=](Index j) { return product(j, true); });
  const float of_negative = sum(team, width, [=](Index j) { return product(j, false); });
  // The sums have waited for all threads' reads, so d may be overwritten.
  for_each(team, width, [=](Index j) {
    const float x = static_cast<float>(u[j]);
    const float scale = x > 0 ? positive : negative;
    d[j] = static_cast<T>(static_cast<float>(d[j]) * (scale * xielu_slope(x) + xielu_linear));
  });
  Kokkos::single(Kokkos::PerTeam(team), [=] {
    sums[0] += of_positive;
    sums[1] += of_negative;
  });
}

}  // namespace

template <class T>
void xielu_forward(const Execution& exec, Matrix<const T> u, Vector<const T> parameters,
                   Matrix<T> y) {
  const Index width = u.extent(1);
  const XieluScales<T> scales{parameters.data()};
  Kokkos::parallel_for(
      "kzero::kernels::xielu_forward", Policy(exec, static_cast<int>(u.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const T* in = &u(team.league_rank(), 0);
        T* out = &y(team.league_rank(), 0);
        const float positive = scales.positive(), negative = scales.negative();
        for_each(team, width, [=](Index j) {
          const float x = static_cast<float>(in[j]);
          const float scale = x > 0 ? positive : negative;
          out[j] = static_cast<T>(Kokkos::fma(xielu_linear, x, scale * scaled_part(x)));
        });
      });
}

template <class T>
void xielu_backward(const Execution& exec, Matrix<const T> u, Vector<const T> parameters,
                    Matrix<T> d, const XieluSums& gradients, Matrix<float> partial) {
  const Index count = u.extent(0), width = u.extent(1), group = ceil_div(count, row_groups);
  const XieluScales<T> scales{parameters.data()};
  Kokkos::parallel_for(
      "kzero::kernels::xielu_backward",
      Policy(exec, static_cast<int>(row_groups), team_size(8), vector_length(32)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index first = Kokkos::min(team.league_rank() * group, count);
        const Index end = Kokkos::min(first + group, count);
        float* sums = &partial(team.league_rank(), 0);
        // One thread of the team alone uses the sums.
        Kokkos::single(Kokkos::PerTeam(team), [=] { sums[0] = sums[1] = 0; });
        const float positive = scales.positive(), negative = scales.negative();
        for (Index i = first; i < end; ++i)
          xielu_row_backward(team, width, &u(i, 0), &d(i, 0), positive, negative, sums);
        Kokkos::single(Kokkos::PerTeam(team), [=] {
          for (int side = 0; side < 2; ++side) sums[side] *= scales.derivative(side);
        });
      });
  if (gradients.sums.size() > 0)
    sum_groups<float>(exec, partial, gradients.accumulate, {gradients.sums});
}

#define KZERO_INSTANTIATE(T)                                                                     \
  template void xielu_forward<T>(const Execution&, Matrix<const T>, Vector<const T>, Matrix<T>); \
  template void xielu_backward<T>(const Execution&, Matrix<const T>, Vector<const T>, Matrix<T>, \
                                  const XieluSums&, Matrix<float>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
