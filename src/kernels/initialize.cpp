#include "kernels/initialize.hpp"

#include <array>
#include <bit>
#include <type_traits>

#include "base/philox.hpp"
#include "kernels/normal.hpp"

namespace kzero::kernels {

template <class T>
void fill(const Execution& exec, Vector<T> x, float value) {
  Kokkos::parallel_for(
      "kzero::kernels::fill", tensor::Range(exec, 0, x.extent(0)),
      KOKKOS_LAMBDA(Index i) { x(i) = static_cast<T>(value); });
}

namespace {

using Numbers = std::conditional_t<tensor::on_host, HostVector, float>;

/// Draws numbers for `lanes` pairs of a block's elements at a time.
struct Draws {
  static constexpr Index lanes = sizeof(Numbers) / sizeof(float);

  std::uint64_t seed, parameter;
  DrawnElements e;
  float std;
  Index first_block, groups;  // groups of pairs per block
  Vector<float> x;

  KOKKOS_INLINE_FUNCTION void operator()(Index item) const {
    const Index block = first_block + item / groups;
    const Index begin = block * e.stride + e.begin;
    const Index pair = begin / 2 + item % groups * lanes;
    float numbers[2 * lanes];
    draw(static_cast<std::uint64_t>(pair), numbers);
    // numbers[0] belongs to element 2 * pair, whose place in x would be `at`.
    const Index at = block * e.length + 2 * pair - begin - e.first;
    const Index from = Kokkos::max(begin - 2 * pair, -at);
    const Index to = Kokkos::min(begin + e.length - 2 * pair, static_cast<Index>(x.extent(0)) - at);
    for (Index i = Kokkos::max(Index{0}, from); i < Kokkos::min(2 * lanes, to); ++i)
      x(at + i) = numbers[i];
  }

 private:
  KOKKOS_INLINE_FUNCTION void draw(std::uint64_t pair, float* numbers) const {
    using Words = Arithmetic<Numbers>::Words;
    std::array<std::uint32_t, lanes> first, second;
#pragma omp simd
    for (std::uint64_t i = 0; i < lanes; ++i) {
      const Philox4 words = philox(seed, pair + i, parameter);
      first[i] = words.word[0], second[i] = words.word[1];
    }
    const auto drawn =
        normal_pair<Numbers>(std::bit_cast<Words>(first), std::bit_cast<Words>(second));
    const auto cosines = std::bit_cast<std::array<float, lanes>>(drawn.first);
    const auto sines = std::bit_cast<std::array<float, lanes>>(drawn.second);
    for (std::size_t i = 0; i < lanes; ++i)
      numbers[2 * i] = std * cosines[i], numbers[2 * i + 1] = std * sines[i];
  }
};

}  // namespace

// One draw gives two elements, so the work items are groups of the pairs that blocks overlap.
void draw_normal(const Execution& exec, std::uint64_t seed, std::uint64_t parameter,
                 const DrawnElements& elements, float std, Vector<float> x) {
  const Index count = x.extent(0);
  if (count == 0) return;
  DrawnElements e = elements;
  // Elements without gaps between them are one block, which begins with the first of them.
  if (e.first % e.length + count <= e.length || e.length == e.stride) {
    e = {0, 0, e.first / e.length * e.stride + e.begin + e.first % e.length, count};
  }
  const Index first_block = e.first / e.length;
  const Index blocks = (e.first + count - 1) / e.length + 1 - first_block;
  const Index pairs = e.length / 2 + 1;  // in a block, wherever it begins
  const Index groups = ceil_div(pairs, Draws::lanes);
  Kokkos::parallel_for("kzero::kernels::draw_normal", tensor::Range(exec, 0, blocks * groups),
                       Draws{seed, parameter, e, std, first_block, groups, x});
}

void draw_uniform(const Execution& exec, std::uint64_t seed, std::uint64_t parameter,
                  const DrawnElements& elements, float bound, Vector<float> x) {
  Kokkos::parallel_for(
      "kzero::kernels::draw_uniform", tensor::Range(exec, 0, x.extent(0)), KOKKOS_LAMBDA(Index i) {
        const Index held = elements.first + i;
        const auto element = static_cast<std::uint64_t>(held / elements.length * elements.stride +
                                                        elements.begin + held % elements.length);
        const Philox4 words = philox(seed, element / 4, parameter);
        const auto drawn = static_cast<float>(words.word[element % 4] >> 8);  // below 2^24
        x(i) = bound * (drawn * 0x1p-23F - 1.0F);
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
