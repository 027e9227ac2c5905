#include "kernels/initialize.hpp"

#include "base/philox.hpp"

namespace kzero::kernels {

template <class T>
void fill(const Execution& exec, Vector<T> x, float value) {
  Kokkos::parallel_for(
      "kzero::kernels::fill", Kokkos::RangePolicy<Execution>(exec, 0, x.extent(0)),
      KOKKOS_LAMBDA(Index i) { x(i) = static_cast<T>(value); });
}

void draw_normal(const Execution& exec, std::uint64_t seed, std::uint64_t parameter, Index first,
                 float std, Vector<float> x) {
  const Index last = first + static_cast<Index>(x.extent(0));
  Kokkos::parallel_for(
      "kzero::kernels::draw_normal",
      Kokkos::RangePolicy<Execution>(exec, first / 2, ceil_div(last, 2)),
      KOKKOS_LAMBDA(Index pair) {
        const Philox4 words = philox(seed, static_cast<std::uint64_t>(pair), parameter);
        // Half a unit keeps the uniform number above zero, so its logarithm is finite.
        const float u = (static_cast<float>(words.word[0]) + 0.5F) * 0x1.0p-32F;
        const float angle = static_cast<float>(words.word[1]) * (6.2831853F * 0x1.0p-32F);
        const float radius = std * Kokkos::sqrt(-2.0F * Kokkos::log(u));
        const Index even = 2 * pair;
        if (even >= first) x(even - first) = radius * Kokkos::cos(angle);
        if (even + 1 < last) x(even + 1 - first) = radius * Kokkos::sin(angle);
      });
}

template <class T>
void round_to(const Execution& exec, Vector<const float> from, Vector<T> to) {
  Kokkos::parallel_for(
      "kzero::kernels::round_to", Kokkos::RangePolicy<Execution>(exec, 0, from.extent(0)),
      KOKKOS_LAMBDA(Index i) { to(i) = static_cast<T>(from(i)); });
}

#define KZERO_INSTANTIATE(T)                                 \
  template void fill<T>(const Execution&, Vector<T>, float); \
  template void round_to<T>(const Execution&, Vector<const float>, Vector<T>);
KZERO_INSTANTIATE(float)
KZERO_INSTANTIATE(bf16)
KZERO_INSTANTIATE(fp16)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
