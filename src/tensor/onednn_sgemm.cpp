#include "tensor/onednn_sgemm.hpp"

#include <dnnl.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "tensor/onednn_sets.hpp"

namespace kzero::tensor {

namespace {

// Sizes of a tile of C and of the part of its sums that one call of sgemm adds. The packed block of
// B has 1 MiB. The steps are the rows and columns that sgemm's innermost loop keeps in registers.
constexpr Index max_rows = 96, row_step = 6;
constexpr Index max_columns = 512, column_step = 16;
constexpr Index max_terms = 512, term_step = 16;

/// The size of equal parts of `all`, of at most `max` elements each. A multiple of `step`, as is
/// `max`.
Index part_of(Index all, Index max, Index step) {
  const Index parts = std::max<Index>(1, ceil_div(all, max));
  return std::max(step, round_up(ceil_div(all, parts), step));
}

/// The stride of a packed line: an odd number of cache lines. Where rows of a matrix are a multiple
/// of 1 KiB apart, as in most models, they compete for a few lines of the first-level cache, and
/// sgemm attains a third to three quarters of its speed.
constexpr Index packed_stride(Index length) {
  constexpr Index cache_line = 64 / sizeof(float);
  return (ceil_div(length, cache_line) | 1) * cache_line;
}

/// A copy of a block of op(X), in X's memory order.
class PackedBlock {
 public:
  PackedBlock(Index rows, Index columns)
      : values_(std::make_unique_for_overwrite<float[]>(
            std::max(rows * packed_stride(columns), columns * packed_stride(rows)))) {}

  /// Copies [rows, columns] from (row, column) on.
  void pack(const Operand& x, Index row, Index column, Index rows, Index columns) {
    if (x.transpose == Transpose::yes) {
      std::swap(row, column);
      std::swap(rows, columns);
    }
    const float* from = static_cast<const float*>(x.data) + row * x.stride + column;
    stride_ = packed_stride(columns);
    for (Index i = 0; i < rows; ++i)
      std::copy_n(from + i * x.stride, columns, values_.get() + i * stride_);
  }

  const float* data() const { return values_.get(); }
  Index stride() const { return stride_; }

 private:
  std::unique_ptr<float[]> values_;
  Index stride_ = 0;
};

char letter(const Operand& x) { return x.transpose == Transpose::no ? 'N' : 'T'; }

/// Returns whether oneDNN may divide the sums of an element among threads wherever they are, so
/// that its bits depend on their number. It does this where it has no code for AVX-512.
bool divides_sums() {
  static const bool divides = !has_avx512(onednn_set());
  return divides;
}

/// Computes C in tiles whose sizes depend only on m, n and k, each on one thread: oneDNN starts no
/// threads within a parallel region. A thread keeps the block of B for all its tiles of a column.
dnnl_status_t tiled_sgemm(Index m, Index n, Index k, const Operand& a, const Operand& b, float beta,
                          float* c, Index c_stride) {
  const Index height = part_of(m, max_rows, row_step);
  const Index width = part_of(n, max_columns, column_step);
  const Index depth = part_of(k, max_terms, term_step);
  const Index down = ceil_div(m, height), tiles = down * ceil_div(n, width);
  int statuses = dnnl_success;  // which is 0
  // Kokkos would let the host wait for the device after a reduction.
#pragma omp parallel reduction(| : statuses)
  {
    thread_local PackedBlock rows(max_rows, max_terms), columns(max_terms, max_columns);
    for (Index l = 0; l < k; l += depth) {
      const Index terms = std::min(depth, k - l);
      Index packed = -1;
#pragma omp for schedule(static) nowait  // a thread has the same tiles for each l
      for (Index tile = 0; tile < tiles; ++tile) {
        const Index i = tile % down * height, j = tile / down * width;
        const Index tile_m = std::min(height, m - i), tile_n = std::min(width, n - j);
        if (packed != j) columns.pack(b, l, j, terms, tile_n);
        packed = j;
        rows.pack(a, i, l, tile_m, terms);
        statuses |= dnnl_sgemm(letter(a), letter(b), tile_m, tile_n, terms, 1, rows.data(),
                               rows.stride(), columns.data(), columns.stride(), l == 0 ? beta : 1,
                               c + i * c_stride + j, c_stride);
      }
    }
  }
  return static_cast<dnnl_status_t>(statuses);
}

/// Computes C by calls of at most max_sum terms each, with all threads. With AVX-512, oneDNN
/// divides longer sums of small products among threads, and those of some transposed operands.
dnnl_status_t parts_of_sums(Index m, Index n, Index k, const Operand& a, const Operand& b,
                            float beta, float* c, Index c_stride) {
  constexpr Index max_sum = 256;  // 384 terms are divided, 256 never were
  const auto* a_data = static_cast<const float*>(a.data);
  const auto* b_data = static_cast<const float*>(b.data);
  const Index a_step = a.transpose == Transpose::yes ? a.stride : 1;
  const Index b_step = b.transpose == Transpose::yes ? 1 : b.stride;
  for (Index l = 0; l == 0 || l < k; l += max_sum) {
    const dnnl_status_t status =
        dnnl_sgemm(letter(a), letter(b), m, n, std::min(max_sum, k - l), 1, a_data + l * a_step,
                   a.stride, b_data + l * b_step, b.stride, l == 0 ? beta : 1, c, c_stride);
    if (status != dnnl_success) return status;
  }
  return dnnl_success;
}

}  // namespace

// Where tiles are packed, their strides do not matter. Elsewhere oneDNN itself packs operands, and
// reads columns slowly whose elements are a multiple of 4 KiB apart.
bool packs_slowly(const Operand& x) {
  constexpr Index cache_way = 4096 / sizeof(float);
  return !divides_sums() && x.transpose == Transpose::yes && x.stride % cache_way == 0;
}

void onednn_sgemm(Index m, Index n, Index k, const Operand& a, const Operand& b, float beta,
                  float* c, Index c_stride) {
  const dnnl_status_t status = divides_sums() ? tiled_sgemm(m, n, k, a, b, beta, c, c_stride)
                                              : parts_of_sums(m, n, k, a, b, beta, c, c_stride);
  KZERO_REQUIRE(status == dnnl_success, ExitCode::other,
                "oneDNN's sgemm failed with status {} for {} x {} x {}", static_cast<int>(status),
                m, n, k);
}

}  // namespace kzero::tensor
