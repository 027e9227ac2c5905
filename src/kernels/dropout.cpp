#include "kernels/dropout.hpp"

#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/philox.hpp"

namespace kzero::kernels {

namespace {

constexpr std::uint64_t dropout_purpose =
    0x64726F706F757473;  // other draws of the seed have other keys

/// Calls set(column, word) for the elements of a row, in any order.
template <class F>
KOKKOS_INLINE_FUNCTION void for_row(const Team& team, const DropoutRows& drawn, Index row,
                                    Index width, const F& set) {
  constexpr int lanes = DropoutRows::lanes, group = DropoutRows::group;
  if (drawn.threshold == 0) {
    for_each(team, width, [=](Index j) { set(j, 0U); });
  } else if constexpr (tensor::on_host) {
    std::uint32_t words[group];
    for (Index first = 0, g = 0; first < width; first += group, ++g) {
      drawn.draw_group(row, g, words);
      const int count = static_cast<int>(width - first < group ? width - first : group);
#pragma omp simd
      for (int j = 0; j < count; ++j) set(first + j, words[j]);
    }
  } else {
    for_each(team, drawn.groups * lanes, [=](Index n) {
      const Index g = n / lanes;
      const int lane = static_cast<int>(n % lanes);
      const Philox4 words = drawn.draw(row, g, lane);
      for (int w = 0; w < 4; ++w) {
        const Index column = g * group + w * lanes + lane;
        if (column < width) set(column, words.word[w]);
      }
    });
  }
}

}  // namespace

Dropout make_dropout(double p, std::uint64_t seed, Index layer, Index first_sequence) {
  KZERO_EXPECT(0 <= p && p < 1 && layer >= 0 && layer < static_cast<Index>(Dropout::step));
  constexpr double max = std::numeric_limits<std::uint32_t>::max();
  return {mixed(seed + dropout_purpose),
          static_cast<std::uint64_t>(first_sequence) * Dropout::step +
              static_cast<std::uint64_t>(layer),
          static_cast<std::uint32_t>(std::fmin(std::round(std::ldexp(p, 32)), max)),
          static_cast<float>(1 / (1 - p))};
}

template <class T>
void drop(const Execution& exec, const Dropout& dropout, const StreamRows& rows,
          Matrix<const T> from, Matrix<T> to) {
  const Index width = from.extent(1), first = rows.first, sequence = rows.sequence;
  Kokkos::parallel_for(
      "kzero::kernels::drop", Policy(exec, static_cast<int>(from.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank(), row = first + i;
        const DropoutRows drawn(dropout, row / sequence, width);
        const T* in = &from(i, 0);
        T* out = &to(i, 0);
        for_row(team, drawn, row % sequence, width, [=](Index j, std::uint32_t word) {
          out[j] = static_cast<T>(drawn.apply(word, static_cast<float>(in[j])));
        });
      });
}

template <class T>
void add_dropped(const Execution& exec, const Dropout& dropout, const StreamRows& rows,
                 Matrix<const T> addend, Matrix<T> x) {
  const Index width = x.extent(1), first = rows.first, sequence = rows.sequence;
  Kokkos::parallel_for(
      "kzero::kernels::add_dropped", Policy(exec, static_cast<int>(x.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank(), row = first + i;
        const DropoutRows drawn(dropout, row / sequence, width);
        const T* added = &addend(i, 0);
        T* out = &x(i, 0);
        for_row(team, drawn, row % sequence, width, [=](Index j, std::uint32_t word) {
          out[j] = static_cast<T>(static_cast<float>(added[j]) +
                                  drawn.apply(word, static_cast<float>(out[j])));
        });
      });
}

#define KZERO_INSTANTIATE(T)                                                                  \
  template void drop<T>(const Execution&, const Dropout&, const StreamRows&, Matrix<const T>, \
                        Matrix<T>);                                                           \
  template void add_dropped<T>(const Execution&, const Dropout&, const StreamRows&,           \
                               Matrix<const T>, Matrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
