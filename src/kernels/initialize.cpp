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
  Kokkos::parallel_for(
      "kzero::kernels::draw_normal", Kokkos::RangePolicy<Execution>(exec, 0, x.extent(0)),
      KOKKOS_LAMBDA(Index i) {
        const Philox4 words = philox(seed, static_cast<std::uint64_t>(first + i), parameter);
        // 53-bit and 32-bit uniforms; the first lies in (0, 1], so its logarithm is finite.
        const std::uint64_t high = (std::uint64_t{words.word[0]} << 21) | (words.word[1] >> 11);
        const double u = (static_cast<double>(high) + 1.0) * 0x1.0p-53;
        const double angle = 6.283185307179586 * (static_cast<double>(words.word[2]) * 0x1.0p-32);
        x(i) = static_cast<float>(static_cast<double>(std) * Kokkos::sqrt(-2.0 * Kokkos::log(u)) *
                                  Kokkos::cos(angle));
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
