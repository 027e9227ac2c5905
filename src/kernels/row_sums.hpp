// Sums over rows in a fixed number of groups, so that results do not depend on the number of
// threads. Used for the gradients of biases and of LayerNorm's parameters.
#pragma once

#include <initializer_list>

#include "kernels/row.hpp"
#include "tensor/view.hpp"

namespace kzero::kernels {

using tensor::Accumulate;

/// Number of groups into which sums over rows divide a batch. A team sums each group, and a device
/// needs several teams per multiprocessor.
inline constexpr Index row_groups = tensor::on_host ? 32 : 512;

/// The number of results of one call of sum_groups.
inline constexpr int max_sums = 4;

/// The fp32 sum of the packs row(i) over [begin, end), added in this order. A device's thread reads
/// `at_once` packs before it adds the first, so that it does not wait for each.
template <int at_once, int pack, class Row>
KOKKOS_INLINE_FUNCTION Pack<float, pack> sum_of_packs(Index begin, Index end, const Row& row) {
  Pack<float, pack> total{};
  const auto add = [&](const auto& x) {
    for (int e = 0; e < pack; ++e) total.values[e] += static_cast<float>(x.values[e]);
  };
  Index i = begin;
  for (; i + at_once <= end; i += at_once) {
    decltype(row(i)) x[at_once];
    for (int r = 0; r < at_once; ++r) x[r] = row(i + r);
    for (int r = 0; r < at_once; ++r) add(x[r]);
  }
  for (; i < end; ++i) add(row(i));
  return total;
}

template <class T>
using Results = std::initializer_list<Vector<T>>;

/// Computes result[j] (=|+=) sum over g of partial(g, first + j) for all j of each result. All
/// results have the same extent. The first result has first = 0, and each further one begins at the
/// column after its predecessor. partial [row_groups, any].
template <class T>
void sum_groups(const Execution& exec, Matrix<const float> partial, Accumulate accumulate,
                Results<T> results);

/// Computes out[j] (=|+=) sum over rows of x(i, j): the gradient of a bias. x [N,D], out [D],
/// partial [row_groups, D]. Out is T or float.
template <class T, class Out>
void sum_rows(const Execution& exec, Matrix<const T> x, Accumulate accumulate, Vector<Out> out,
              Matrix<float> partial);

}  // namespace kzero::kernels
