#include "kernels/initialize.hpp"

#include "base/philox.hpp"

namespace kzero::kernels {

template <class T>
void fill(const Execution& exec, Vector<T> x, float value) {
  Kokkos::parallel_for(
      "kzero::kernels::fill", tensor::Range(exec, 0, x.extent(0)),
      KOKKOS_LAMBDA(Index i) { x(i) = static_cast<T>(value); });
}

// Two elements come from one draw, so the work items are the pairs that blocks touch.
void draw_normal(const Execution& exec, std::uint64_t seed, std::uint64_t parameter,
                 const DrawnElements& elements, float std, Vector<float> x) {
  const Index count = x.extent(0);
  if (count == 0) return;
  DrawnElements e = elements;
  Index first_block = e.first / e.length;
  const Index blocks = (e.first + count - 1) / e.length + 1 - first_block;
  if (blocks == 1) {  // perhaps a small part of a large block
    e = {0, 0, first_block * e.stride + e.begin + e.first % e.length, count};
    first_block = 0;
  }
  const Index pairs = e.length / 2 + 1;  // of a block, wherever it begins
  Kokkos::parallel_for(
      "kzero::kernels::draw_normal", tensor::Range(exec, 0, blocks * pairs),
      KOKKOS_LAMBDA(Index item) {
        const Index block = first_block + item / pairs;
        const Index begin = block * e.stride + e.begin;
        const Index pair = begin / 2 + item % pairs;
        const Philox4 words = philox(seed, static_cast<std::uint64_t>(pair), parameter);
        // The offset of half a unit keeps the uniform number above zero, so its logarithm is
        // finite.
        const float u = (static_cast<float>(words.word[0]) + 0.5F) * 0x1.0p-32F;
        const float angle = static_cast<float>(words.word[1]) * (6.2831853F * 0x1.0p-32F);
        const float radius = std * Kokkos::sqrt(-2.0F * Kokkos::log(u));
        const auto put = [&](Index element, float value) {
          const Index at = block * e.length + element - begin - e.first;
          if (element >= begin && element < begin + e.length && at >= 0 && at < count)
            x(at) = value;
        };
        put(2 * pair, radius * Kokkos::cos(angle));
        put(2 * pair + 1, radius * Kokkos::sin(angle));
      });
}

template <class T>
void round_to(const Execution& exec, Vector<const float> from, Vector<T> to) {
  Kokkos::parallel_for(
      "kzero::kernels::round_to", tensor::Range(exec, 0, from.extent(0)),
      KOKKOS_LAMBDA(Index i) { to(i) = static_cast<T>(from(i)); });
}

#define KZERO_INSTANTIATE(T)                                 \
  template void fill<T>(const Execution&, Vector<T>, float); \
  template void round_to<T>(const Execution&, Vector<const float>, Vector<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
