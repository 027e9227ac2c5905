#include "kernels/few_rows.hpp"

namespace kzero::kernels {

namespace {

// On hosts: rows whose sums a thread keeps at once, and the columns of a tile of them, 16 KiB of
// the first-level cache. A row of a tile is a run of memory long enough to be fetched ahead.
constexpr Index rows_at_once = 8, least_columns = 64, most_columns = 512;
// Outputs of one work item where each is the sum over a row of the weight.
constexpr Index outputs_at_once = 16;

template <class T, class Out>
struct FewRowsProduct {
  const T *x, *weight, *bias, *addend;
  Out* y;
  Index rows, in, out;

  KOKKOS_INLINE_FUNCTION void store(Index i, Index column, float sum) const {
    if (bias != nullptr) sum += static_cast<float>(bias[column]);
    if (addend != nullptr) sum += static_cast<float>(addend[i * out + column]);
    y[i * out + column] = static_cast<Out>(sum);
  }
};

/// Adds factors[0] * w[0] + ... of `terms` rows of the weight, `stride` apart, to a row of sums.
template <int terms, class T>
void add_weight_rows(const T* x, const T* w, Index stride, Index columns, float* sums) {
  if constexpr (terms == 1) {
    const auto x0 = static_cast<float>(x[0]);
    detail::host_for(columns, [=](Index c) { sums[c] += x0 * static_cast<float>(w[c]); });
  } else {
    const auto x0 = static_cast<float>(x[0]), x1 = static_cast<float>(x[1]),
               x2 = static_cast<float>(x[2]), x3 = static_cast<float>(x[3]);
    const T *w1 = w + stride, *w2 = w1 + stride, *w3 = w2 + stride;
    detail::host_for(columns, [=](Index c) {
      sums[c] += x0 * static_cast<float>(w[c]) + x1 * static_cast<float>(w1[c]) +
                 x2 * static_cast<float>(w2[c]) + x3 * static_cast<float>(w3[c]);
    });
  }
}

/// Computes columns [first, first + columns) of rows [row, row + rows).
template <class T, class Out>
void multiply_tile(const FewRowsProduct<T, Out>& p, Index row, Index rows, Index first,
                   Index columns) {
  float sums[rows_at_once][most_columns];
  for (Index i = 0; i < rows; ++i) std::fill(sums[i], sums[i] + columns, 0.0F);
  const Index whole = p.in / 4 * 4;
  for (Index k = 0; k < whole; k += 4) {
    for (Index i = 0; i < rows; ++i)
      add_weight_rows<4>(p.x + (row + i) * p.in + k, p.weight + k * p.out + first, p.out, columns,
                         sums[i]);
  }
  for (Index k = whole; k < p.in; ++k) {
    for (Index i = 0; i < rows; ++i)
      add_weight_rows<1>(p.x + (row + i) * p.in + k, p.weight + k * p.out + first, p.out, columns,
                         sums[i]);
  }
  for (Index i = 0; i < rows; ++i) {
    for (Index c = 0; c < columns; ++c) p.store(row + i, first + c, sums[i][c]);
  }
}

template <class T, class Out>
void host_in_out(const Execution& exec, const FewRowsProduct<T, Out>& p) {
  const Index share = round_up(ceil_div(p.out, exec.concurrency()), least_columns);
  const Index tile = std::clamp(share, least_columns, most_columns);
  Kokkos::parallel_for("kzero::kernels::few_rows_by_columns",
                       tensor::Range(exec, 0, ceil_div(p.out, tile)), [=](Index t) {
                         const Index first = t * tile, columns = std::min(tile, p.out - first);
                         for (Index row = 0; row < p.rows; row += rows_at_once)
                           multiply_tile(p, row, std::min(rows_at_once, p.rows - row), first,
                                         columns);
                       });
}

template <class T, class Out>
void host_out_in(const Execution& exec, const FewRowsProduct<T, Out>& p) {
  Kokkos::parallel_for("kzero::kernels::few_rows_by_outputs",
                       tensor::Range(exec, 0, ceil_div(p.out, outputs_at_once)), [=](Index block) {
                         const Index end = std::min(p.out, (block + 1) * outputs_at_once);
                         for (Index o = block * outputs_at_once; o < end; ++o) {
                           const T* w = p.weight + o * p.in;
                           for (Index i = 0; i < p.rows; ++i) {
                             const T* x = p.x + i * p.in;
                             p.store(i, o, detail::host_sum(p.in, [=](Index k) {
                                       return static_cast<float>(x[k]) * static_cast<float>(w[k]);
                                     }));
                           }
                         }
                       });
}

/// One thread an element: neighbours read neighbouring columns.
template <class T, class Out>
void device_in_out(const Execution& exec, const FewRowsProduct<T, Out>& p) {
  Kokkos::parallel_for(
      "kzero::kernels::few_rows_by_columns", tensor::Range(exec, 0, p.rows * p.out),
      KOKKOS_LAMBDA(Index element) {
        const Index i = element / p.out, column = element % p.out;
        const T* x = p.x + i * p.in;
        float sum = 0;
        for (Index k = 0; k < p.in; ++k)
          sum += static_cast<float>(x[k]) * static_cast<float>(p.weight[k * p.out + column]);
        p.store(i, column, sum);
      });
}

/// One team a row of the weight.
template <class T, class Out>
void device_out_in(const Execution& exec, const FewRowsProduct<T, Out>& p) {
  Kokkos::parallel_for(
      "kzero::kernels::few_rows_by_outputs", Policy(exec, static_cast<int>(p.out), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index o = team.league_rank();
        const T* w = p.weight + o * p.in;
        for (Index i = 0; i < p.rows; ++i) {
          const auto product = [](float a, float b) { return a * b; };
          const float sum = sum_of(team, p.in, product, p.x + i * p.in, w);
          Kokkos::single(Kokkos::PerTeam(team), [=]() { p.store(i, o, sum); });
        }
      });
}

}  // namespace

template <class T, class Out>
void few_rows_product(const Execution& exec, const FewRows<T>& f, Matrix<Out> y) {
  const Index rows = y.extent(0), in = f.x.extent(1), out = y.extent(1);
  const FewRowsProduct<T, Out> p{f.x.data(), f.weight.data(), f.bias, f.addend, y.data(), rows, in,
                                 out};
  const bool is_in_out = f.order == WeightOrder::in_out;
  if constexpr (tensor::on_host) {
    is_in_out ? host_in_out(exec, p) : host_out_in(exec, p);
  } else {
    is_in_out ? device_in_out(exec, p) : device_out_in(exec, p);
  }
}

#define KZERO_INSTANTIATE(T) \
  template void few_rows_product<T, T>(const Execution&, const FewRows<T>&, Matrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE
template void few_rows_product<bf16, float>(const Execution&, const FewRows<bf16>&, Matrix<float>);
template void few_rows_product<fp16, float>(const Execution&, const FewRows<fp16>&, Matrix<float>);

}  // namespace kzero::kernels
