#include "kernels/reduction.hpp"

namespace kzero::kernels {

namespace {

/// The product is exact in fp64, so it does not matter whether it is fused with a sum.
KOKKOS_INLINE_FUNCTION double weighted(float x, const float* weights, Index i) {
  return weights == nullptr ? static_cast<double>(x)
                            : static_cast<double>(weights[i]) * static_cast<double>(x);
}

/// Sums with one team, which has the same number of threads on any device: their number fixes the
/// order.
void sum_in_turns(const Execution& exec, Vector<const float> x, double* sum, const float* weights) {
  const Index count = x.extent(0);
  Kokkos::parallel_for(
      "kzero::kernels::sum_in_turns", Policy(exec, 1, team_size(256)),
      KOKKOS_LAMBDA(const Team& team) {
        double all = 0;
        Kokkos::parallel_reduce(
            Kokkos::TeamThreadRange(team, count),
            [&](Index i, double& own) { own += weighted(x(i), weights, i); }, all);
        Kokkos::single(Kokkos::PerTeam(team), [&]() { *sum = all; });
      });
}

}  // namespace

void sum_in_order(const Execution& exec, Vector<const float> x, double* sum,
                  Vector<const float> weights) {
  const float* const factors = weights.data();
  if (!tensor::on_host) {
    sum_in_turns(exec, x, sum, factors);
    return;
  }
  const Index count = x.extent(0);
  // Uses one work item, because the back end chooses the order of a parallel reduction.
  Kokkos::parallel_for(
      "kzero::kernels::sum_in_order", tensor::Range(exec, 0, 1), KOKKOS_LAMBDA(Index) {
        double total = 0;
        for (Index i = 0; i < count; ++i) total += weighted(x(i), factors, i);
        *sum = total;
      });
}

namespace {

/// Number of blocks of squares_block elements per team in sum_of_squares.
constexpr Index blocks_at_once = tensor::on_host ? 128 : 512;

/// Neighbouring blocks that a device's thread reads before it adds up the first of them.
constexpr Index blocks_in_flight = 4;

struct BlockSums {
  float block[blocks_in_flight] = {};

  KOKKOS_INLINE_FUNCTION BlockSums& operator+=(const BlockSums& other) {
    for (int b = 0; b < blocks_in_flight; ++b) block[b] += other.block[b];
    return *this;
  }
};

template <class T>
KOKKOS_INLINE_FUNCTION float square(T value) {
  return static_cast<float>(value) * static_cast<float>(value);
}

/// The fp32 sum of the squares of n elements, on every lane of the thread.
template <class T>
KOKKOS_INLINE_FUNCTION float block_of_squares(const Team& team, const T* x, Index n) {
  if constexpr (tensor::on_host) {
    return detail::host_sum(n, [=](Index i) { return square(x[i]); });
  } else {
    constexpr int pack = 16 / sizeof(T);
    float total = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, ceil_div(n, Index{pack})),
        [&](Index at, float& lane) {
          const Index begin = at * pack;
          if (begin + pack > n) {
            for (Index i = begin; i < n; ++i) lane += square(x[i]);
            return;
          }
          const auto values = read_pack<pack>(x + begin);
          for (int e = 0; e < pack; ++e) lane += square(values.values[e]);
        },
        total);
    return total;
  }
}

/// The same sums of whole blocks that begin at a multiple of 16 bytes, with the same bits.
template <class T>
KOKKOS_INLINE_FUNCTION BlockSums blocks_of_squares(const Team& team, const T* x) {
  constexpr int pack = 16 / sizeof(T);
  BlockSums total;
  Kokkos::parallel_reduce(
      Kokkos::ThreadVectorRange(team, Index{squares_block / pack}),
      [&](Index at, BlockSums& lane) {
        Pack<T, pack> values[blocks_in_flight];
        for (int b = 0; b < blocks_in_flight; ++b)
          values[b] = Pack<T, pack>::at(x + b * Index{squares_block} + at * pack);
        for (int b = 0; b < blocks_in_flight; ++b) {
          for (int e = 0; e < pack; ++e) lane.block[b] += square(values[b].values[e]);
        }
      },
      total);
  return total;
}

/// Adds the sums of up to blocks_in_flight blocks of elements [first, last) from `block` on.
/// unit[i] is element i.
template <class T>
KOKKOS_INLINE_FUNCTION void add_squares(const Team& team, const T* unit, Index first, Index last,
                                        Index block, Index blocks, ExactSum& total) {
  const Index begin = block * squares_block;
  const Index end = begin + Index{squares_block} * blocks_in_flight;
  if (!tensor::on_host && blocks == blocks_in_flight && begin >= first && end <= last &&
      begin_packs(unit + begin)) {
    const BlockSums sums = blocks_of_squares(team, unit + begin);
    Kokkos::single(Kokkos::PerThread(team), [&]() {
      for (int b = 0; b < blocks_in_flight; ++b) total.add(sums.block[b]);
    });
    return;
  }
  for (Index b = block; b < block + blocks; ++b) {
    const Index from = Kokkos::max(first, b * squares_block);
    const Index to = Kokkos::min(last, (b + 1) * squares_block);
    const float squares = block_of_squares(team, unit + from, to - from);
    Kokkos::single(Kokkos::PerThread(team), [&]() { total.add(squares); });
  }
}

}  // namespace

template <class T>
void SquaresTable<T>::add(const UnitElements<T>& range) {
  const Index blocks =
      ceil_div(range.first + range.count, squares_block) - range.first / squares_block;
  table_.add(range, ceil_div(blocks, blocks_at_once));
}

template <class T>
void sum_of_squares(const Execution& exec, const SquaresTable<T>& ranges, ExactSum* sum) {
  const typename SquaresTable<T>::Table table = ranges.table();
  // Kokkos does not wait for a reduction whose result is a view.
  const Kokkos::View<ExactSum, tensor::Memory, Kokkos::MemoryUnmanaged> result(sum);
  Kokkos::parallel_reduce(
      "kzero::kernels::sum_of_squares",
      TablePolicy(exec, static_cast<int>(table.blocks()), team_size(16), vector_length(8)),
      KOKKOS_LAMBDA(const Team& team, ExactSum& total) {
        const int which = table.part_of(team.league_rank());
        const UnitElements<T>& range = table.part(which);
        const Index first = range.first, last = first + range.count;
        const T* unit = range.data - first;
        const Index turn = team.league_rank() - table.first_block(which);
        const Index from = first / squares_block + turn * blocks_at_once;
        const Index to = Kokkos::min(ceil_div(last, squares_block), from + blocks_at_once);
        const Index groups = ceil_div(to - from, Index{blocks_in_flight});
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, groups), [&](Index group) {
          const Index block = from + group * blocks_in_flight;
          const Index blocks = Kokkos::min(Index{blocks_in_flight}, to - block);
          add_squares(team, unit, first, last, block, blocks, total);
        });
      },
      result);
}

template <class T>
void sum_of_squares(const Execution& exec, Vector<const T> x, Index first, ExactSum* sum) {
  SquaresTable<T> ranges;
  ranges.add({x.data(), first, static_cast<Index>(x.extent(0))});
  sum_of_squares<T>(exec, ranges, sum);
}

void add_exact_sum(const Execution& exec, const ExactSum* part, ExactSum* sum) {
  Kokkos::parallel_for(
      "kzero::kernels::add_exact_sum", tensor::Range(exec, 0, ExactSum::words_of_sum),
      KOKKOS_LAMBDA(Index i) { sum->word[i] += part->word[i]; });
}

template <class T>
void sum_partial_rows(const Execution& exec, const RankValues<T>& values, const T* bias,
                      const T* addend, Matrix<T> out) {
  const Index rows = out.extent(0), width = out.extent(1);
  const Index blocks = ceil_div(width, column_block);
  const RankValues<T> v = values;
  Kokkos::parallel_for(
      "kzero::kernels::sum_partial_rows",
      Policy(exec, static_cast<int>(rows * blocks), Kokkos::AUTO), KOKKOS_LAMBDA(const Team& team) {
        const Index row = team.league_rank() / blocks;
        const Index begin = team.league_rank() % blocks * column_block;
        const Index at = row * width + begin;
        for_each(team, Kokkos::min(Index{column_block}, width - begin), [=](Index j) {
          float total = 0;
          for (int r = 0; r < v.ranks; ++r) total += static_cast<float>(values_of(v, r)[at + j]);
          if (bias != nullptr) total += static_cast<float>(bias[begin + j]);
          if (addend != nullptr) total += static_cast<float>(addend[at + j]);
          out.data()[at + j] = static_cast<T>(total);
        });
      });
}

#define KZERO_INSTANTIATE(T)                                                                    \
  template class SquaresTable<T>;                                                               \
  template void sum_of_squares<T>(const Execution&, const SquaresTable<T>&, ExactSum*);         \
  template void sum_of_squares<T>(const Execution&, Vector<const T>, Index, ExactSum*);         \
  template void sum_partial_rows<T>(const Execution&, const RankValues<T>&, const T*, const T*, \
                                    Matrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE
}  // namespace kzero::kernels
