#include "kernels/host/few_rows.hpp"

#include "kernels/host/vector.hpp"

namespace kzero::kernels::host {

namespace {

// Weights [K,N]: the rows whose sums a thread keeps at once, and the columns of a tile of sums,
// which fills 16 KiB of the first-level cache. A tile's row is a run of memory long enough for
// prefetching.
constexpr Index tile_rows = 8, min_columns = 64, max_columns = 512;

// Weights [N,K]: the outputs of a work item, and the outputs and rows whose sums stay in registers
// at once: 16 of AVX-512's 32, or 8 of AVX2's 16.
constexpr Index item_outputs = 16;
constexpr int block_outputs = 4, block_rows = host_lanes == 16 ? 4 : 2;

/// Adds the products of `terms` rows of the weight, `stride` apart, to the sums of columns [0,
/// columns) of `rows` rows. x is [rows, ..] with rows `x_stride` apart.
template <int terms, class T>
void add_weight_rows(const T* x, Index x_stride, Index rows, const T* w, Index stride,
                     Index columns, float (*sums)[max_columns]) {
  float factors[tile_rows][terms];
  for (Index i = 0; i < rows; ++i) {
    for (int t = 0; t < terms; ++t) factors[i][t] = static_cast<float>(x[i * x_stride + t]);
  }
  Index c = 0;
  for (; c + host_lanes <= columns; c += host_lanes) {
    HostVector weights[terms];
    for (int t = 0; t < terms; ++t) weights[t] = load_widened(w + t * stride + c);
    for (Index i = 0; i < rows; ++i) {
      HostVector sum = load_vector(sums[i] + c);
      for (int t = 0; t < terms; ++t) sum += factors[i][t] * weights[t];
      store_vector(sums[i] + c, sum);
    }
  }
  for (; c < columns; ++c) {
    for (Index i = 0; i < rows; ++i) {
      for (int t = 0; t < terms; ++t)
        sums[i][c] += factors[i][t] * static_cast<float>(w[t * stride + c]);
    }
  }
}

/// Computes columns [first, first + columns) of rows [row, row + rows).
template <class T, class Out>
void multiply_few(const FewRowsProduct<T, Out>& p, Index row, Index rows, Index first,
                  Index columns) {
  float sums[tile_rows][max_columns];
  for (Index i = 0; i < rows; ++i) std::fill(sums[i], sums[i] + columns, 0.0F);
  const T* x = p.x + row * p.in;
  const T* w = p.weight + first;
  Index k = 0;
  for (; k + 4 <= p.in; k += 4)
    add_weight_rows<4>(x + k, p.in, rows, w + k * p.out, p.out, columns, sums);
  for (; k < p.in; ++k) add_weight_rows<1>(x + k, p.in, rows, w + k * p.out, p.out, columns, sums);
  for (Index i = 0; i < rows; ++i) {
    for (Index c = 0; c < columns; ++c) p.store(row + i, first + c, sums[i][c]);
  }
}

/// Sums the lanes in a fixed order.
float sum_lanes(HostVector v) {
  float lanes[host_lanes];
  store_vector(lanes, v);
  for (int half = host_lanes / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

/// Computes outputs [output, output + outputs) of rows [row, row + rows). An element's sum has the
/// same order in a block of any size: one vector along K, its lanes, then the rest of K.
template <int rows, int outputs, class T, class Out>
void multiply_dots(const FewRowsProduct<T, Out>& p, Index row, Index output) {
  const T* x = p.x + row * p.in;
  const T* w = p.weight + output * p.in;
  HostVector sums[rows][outputs] = {};
  const Index whole = p.in / host_lanes * host_lanes;
  for (Index k = 0; k < whole; k += host_lanes) {
    HostVector weights[outputs];
    for (int o = 0; o < outputs; ++o) weights[o] = load_widened(w + o * p.in + k);
    for (int i = 0; i < rows; ++i) {
      const HostVector factors = load_widened(x + i * p.in + k);
      for (int o = 0; o < outputs; ++o) sums[i][o] += factors * weights[o];
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int o = 0; o < outputs; ++o) {
      float rest = 0;
      for (Index k = whole; k < p.in; ++k)
        rest += static_cast<float>(x[i * p.in + k]) * static_cast<float>(w[o * p.in + k]);
      p.store(row + i, output + o, sum_lanes(sums[i][o]) + rest);
    }
  }
}

template <int outputs, class T, class Out>
void multiply_outputs(const FewRowsProduct<T, Out>& p, Index output) {
  Index row = 0;
  for (; row + block_rows <= p.rows; row += block_rows)
    multiply_dots<block_rows, outputs>(p, row, output);
  for (; row < p.rows; ++row) multiply_dots<1, outputs>(p, row, output);
}

}  // namespace

template <class T, class Out>
void few_rows_in_out(const Execution& exec, const FewRowsProduct<T, Out>& p) {
  const Index share = round_up(ceil_div(p.out, exec.concurrency()), min_columns);
  const Index tile = std::clamp(share, min_columns, max_columns);
  Kokkos::parallel_for("kzero::kernels::few_rows_by_columns",
                       tensor::Range(exec, 0, ceil_div(p.out, tile)), [=](Index t) {
                         const Index first = t * tile, columns = std::min(tile, p.out - first);
                         for (Index row = 0; row < p.rows; row += tile_rows)
                           multiply_few(p, row, std::min(tile_rows, p.rows - row), first, columns);
                       });
}

template <class T, class Out>
void few_rows_out_in(const Execution& exec, const FewRowsProduct<T, Out>& p) {
  Kokkos::parallel_for("kzero::kernels::few_rows_by_outputs",
                       tensor::Range(exec, 0, ceil_div(p.out, item_outputs)), [=](Index item) {
                         const Index end = std::min(p.out, (item + 1) * item_outputs);
                         Index output = item * item_outputs;
                         for (; output + block_outputs <= end; output += block_outputs)
                           multiply_outputs<block_outputs>(p, output);
                         for (; output < end; ++output) multiply_outputs<1>(p, output);
                       });
}

#define KZERO_INSTANTIATE(T)                                                          \
  template void few_rows_in_out<T, T>(const Execution&, const FewRowsProduct<T, T>&); \
  template void few_rows_out_in<T, T>(const Execution&, const FewRowsProduct<T, T>&);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE
template void few_rows_in_out<bf16, float>(const Execution&, const FewRowsProduct<bf16, float>&);
template void few_rows_out_in<bf16, float>(const Execution&, const FewRowsProduct<bf16, float>&);
template void few_rows_in_out<fp16, float>(const Execution&, const FewRowsProduct<fp16, float>&);
template void few_rows_out_in<fp16, float>(const Execution&, const FewRowsProduct<fp16, float>&);

}  // namespace kzero::kernels::host
