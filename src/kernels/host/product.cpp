#include "kernels/host/product.hpp"

#include <type_traits>
#include <utility>

#include "base/processor.hpp"

namespace kzero::kernels {

namespace {

// A block of C stays in registers for all k. It uses 24 of AVX-512's 32 registers, or 12 of AVX2's
// 16, which leaves room for a row of B. Two FMA units with a latency of four cycles need at least
// eight.
constexpr int max_rows = 6;
constexpr int max_vectors = host_lanes == 8 ? 2 : 4;

template <class Parts, int part, int rows, int vectors, class E, class V>
void add_part(const HostProduct<E>& p, const E* a, const V (&row)[vectors],
              HostVector (&sums)[rows][vectors]) {
  decltype(Parts::template of<part>(row[0])) parts[vectors];
  for (int v = 0; v < vectors; ++v) parts[v] = Parts::template of<part>(row[v]);
  for (int i = 0; i < rows; ++i) {
    const auto factor = Parts::template of<part>(a[i * p.a.row]);
    for (int v = 0; v < vectors; ++v) Parts::add(sums[i][v], factor, parts[v]);
  }
}

template <class Parts, int rows, int vectors, class E>
void multiply_block(const HostProduct<E>& p, Index first_row, Index first_column) {
  HostVector sums[rows][vectors] = {};
  const E* a = p.a.data + first_row * p.a.row;
  const E* b = p.b + first_column;
  for (Index k = 0; k < p.k; ++k) {
    decltype(load_vector(b)) row[vectors];
    for (int v = 0; v < vectors; ++v) row[v] = load_vector(b + v * host_lanes);
    add_part<Parts, 0>(p, a, row, sums);
    if constexpr (Parts::parts == 2) add_part<Parts, 1>(p, a, row, sums);
    a += p.a.column;
    b += p.b_stride;
  }
  for (int i = 0; i < rows; ++i) {
    float* c = p.c + (first_row + i) * p.c_stride + first_column;
    for (int v = 0; v < vectors; ++v, c += host_lanes)
      store_vector(c, p.adds ? load_vector(c) + sums[i][v] : sums[i][v]);
  }
}

template <class Parts, int vectors, int... rows, class E>
void multiply_columns(const HostProduct<E>& p, Index first_column,
                      std::integer_sequence<int, rows...>) {
  Index i = 0;
  const auto blocks_of = [&]<int count>(std::integral_constant<int, count>) {
    for (; i + count <= p.m; i += count) multiply_block<Parts, count, vectors>(p, i, first_column);
  };
  (blocks_of(std::integral_constant<int, rows>()), ...);
}

/// Rows of blocks in descending order. With a single row the units wait for each other's sums.
using RowCounts = std::integer_sequence<int, max_rows, 4, 2, 1>;

template <class Parts, class E, int... widths>
void multiply_rest(const HostProduct<E>& p, Index first_column,
                   std::integer_sequence<int, widths...>) {
  const Index left = (p.n - first_column) / host_lanes;
  ((left == widths + 1 ? multiply_columns<Parts, widths + 1>(p, first_column, RowCounts())
                       : void()),
   ...);
}

template <class Parts, class E>
void multiply_with(const HostProduct<E>& p) {
  constexpr Index block = max_vectors * host_lanes;
  Index column = 0;
  for (; column + block <= p.n; column += block)
    multiply_columns<Parts, max_vectors>(p, column, RowCounts());
  multiply_rest<Parts>(p, column, std::make_integer_sequence<int, max_vectors - 1>());
}

}  // namespace

template <class E>
void multiply(const HostProduct<E>& p) {
  multiply_with<std::conditional_t<std::is_same_v<E, Bf16Pair>, PairParts, Whole>>(p);
}
template void multiply(const HostProduct<float>&);
template void multiply(const HostProduct<Bf16Pair>&);

void multiply_widened(const HostProduct<Bf16Pair>& p) { multiply_with<Halves>(p); }

ProductBackend<Bf16Pair> vector_backend() {
  return {.multiply = pairs_are_slow() ? &multiply_widened : &multiply<Bf16Pair>};
}

}  // namespace kzero::kernels
