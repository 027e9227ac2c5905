#include "kernels/attention_host.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "kernels/attention_host_scratch.hpp"
#include "kernels/exponential.hpp"
#include "kernels/host_product.hpp"

namespace kzero::kernels::host {

namespace {

/// Sum and logarithm of one softmax.
struct RowSum {
  float inverse;
  float log;
};

/// Turns the first `seen` scores of a row into unnormalised probabilities and zeros the rest:
/// dividing a row's output, d wide, is cheaper than dividing its probabilities.
RowSum softmax_row(float* row, Index seen, Index columns) {
  const float largest = detail::host_max(seen, [=](Index j) { return row[j]; });
  const float total = detail::host_sum(seen, [=](Index j) {
    row[j] = exponential(row[j] - largest);
    return row[j];
  });
  std::fill(row + seen, row + columns, 0.0F);
  return {1.0F / total, largest + std::log(total)};
}

/// The query rows that see a block of keys, within a block of them.
struct Seeing {
  Index begin, count;

  Seeing(Index first, Index rows, Index first_key)
      : begin(std::max<Index>(0, first_key - first)), count(rows - begin) {}
};

/// Computes query rows [first, first + rows) of the head's output, and their log-sums.
void forward_rows(const AttentionShape& s, const HeadScratch& h, Index first, Index rows,
                  float* log_sum) {
  const Index d = s.head_width(), width = HeadScratch::width(s), end = first + rows;
  const Index columns = round_up(end, key_block);
  for (Index key = 0; key < end; key += key_block) {
    const Seeing seeing(first, rows, key);
    multiply({.m = seeing.count,
              .n = key_block,
              .k = d,
              .a = {h.q + (first + seeing.begin) * width, width},
              .b = h.k_transposed + key * width,
              .b_stride = key_block,
              .c = h.scores + seeing.begin * columns + key,
              .c_stride = columns});
  }
  float inverse[query_block];
  for (Index i = 0; i < rows; ++i) {
    const RowSum sum = softmax_row(h.scores + i * columns, first + i + 1, columns);
    log_sum[first + i] = sum.log;
    inverse[i] = sum.inverse;
  }
  for (Index key = 0; key < end; key += key_block) {
    const Seeing seeing(first, rows, key);
    multiply({.m = seeing.count,
              .n = width,
              .k = key_block,
              .a = {h.scores + seeing.begin * columns + key, columns},
              .b = h.v + key * width,
              .b_stride = width,
              .c = h.out + seeing.begin * width,
              .c_stride = width,
              .adds = key > 0});
  }
  for (Index i = 0; i < rows; ++i) {
    float* row = h.out + i * width;
    const float factor = inverse[i];
    detail::host_for(d, [=](Index j) { row[j] *= factor; });
  }
}

/// Turns a tile of scores and of the probabilities' gradients into probabilities and the gradients
/// of scores, by 1 / sqrt(d) too small.
void score_gradients(const HeadScratch& h, const Seeing& seeing, Index first, Index first_key,
                     const float* log_sum) {
  for (Index i = seeing.begin; i < seeing.begin + seeing.count; ++i) {
    const Index seen = std::min(first + i + 1 - first_key, key_block);
    float* p = h.scores + i * key_block;
    float* dp = h.dscores + i * key_block;
    const float log_total = log_sum[first + i], delta = h.delta[first + i];
    detail::host_for(seen, [=](Index j) {
      p[j] = exponential(p[j] - log_total);
      dp[j] = p[j] * (dp[j] - delta);
    });
    std::fill(p + seen, p + key_block, 0.0F);
    std::fill(dp + seen, dp + key_block, 0.0F);
  }
}

/// Adds what query rows [first, first + rows) and one block of keys give to the gradients: to dq in
/// h.out, to dk and dv.
void backward_tile(const AttentionShape& s, const HeadScratch& h, Index first, Index rows,
                   Index key, const float* log_sum) {
  const Index d = s.head_width(), width = HeadScratch::width(s);
  const Seeing seeing(first, rows, key);
  const Index row = first + seeing.begin, in_tile = seeing.begin * key_block;
  float *p = h.scores + in_tile, *ds = h.dscores + in_tile;
  HostProduct tile{.m = seeing.count,
                   .n = key_block,
                   .k = d,
                   .a = {h.q + row * width, width},
                   .b = h.k_transposed + key * width,
                   .b_stride = key_block,
                   .c = p,
                   .c_stride = key_block};
  multiply(tile);
  tile.a = {h.dout + row * width, width}, tile.b = h.v_transposed + key * width, tile.c = ds;
  multiply(tile);
  score_gradients(h, seeing, first, key, log_sum);
  multiply({.m = seeing.count,
            .n = width,
            .k = key_block,
            .a = {ds, key_block},
            .b = h.k + key * width,
            .b_stride = width,
            .c = h.out + seeing.begin * width,
            .c_stride = width,
            .adds = key > 0});
  HostProduct keys{.m = key_block,
                   .n = width,
                   .k = seeing.count,
                   .a = {ds, 1, key_block},
                   .b = h.q + row * width,
                   .b_stride = width,
                   .c = h.dk + key * width,
                   .c_stride = width,
                   .adds = true};
  multiply(keys);
  keys.a = {p, 1, key_block}, keys.b = h.dout + row * width, keys.c = h.dv + key * width;
  multiply(keys);
}

float scale_of(const AttentionShape& s) {
  return 1.0F / std::sqrt(static_cast<float>(s.head_width()));
}

/// Runs work(head index, scratch) for every head of every sequence, one per thread.
template <class F>
void for_each_head(const Execution& exec, const AttentionShape& s, const char* label,
                   Vector<float> scratch, const F& work) {
  const Index per_thread = HeadScratch::elements(s);
  const Index slots = static_cast<Index>(scratch.extent(0)) / per_thread;
  KZERO_REQUIRE(slots > 0, ExitCode::other, "internal error: no scratch was planned for attention");
  // One slot per thread: work is distributed by slot, so that slots never exceed the planned
  // number.
  const Index heads = s.batch * s.heads;
  Kokkos::parallel_for(label, tensor::Range(exec, 0, slots), [=](Index slot) {
    const HeadScratch h(s, scratch.data() + slot * per_thread);
    for (Index head = slot; head < heads; head += slots) work(head, h);
  });
}

}  // namespace

Index attention_scratch_bytes(const AttentionShape& shape, Index threads) {
  return threads * HeadScratch::elements(shape) * static_cast<Index>(sizeof(float));
}

template <class T>
void attention_forward(const Execution& exec, const AttentionShape& s, Matrix<const T> qkv,
                       Matrix<T> out, Matrix<float> log_sum, Vector<float> scratch) {
  for_each_head(exec, s, "kzero::kernels::attention_forward", scratch,
                [=](Index head, const HeadScratch& h) {
                  const Index d = s.head_width(), first_row = head / s.heads * s.sequence;
                  const T* q = &qkv(first_row, head % s.heads * d);
                  T* result = &out(first_row, head % s.heads * d);
                  load(s, q, 3 * s.width, scale_of(s), h.q);
                  load(s, q + s.width, 3 * s.width, 1, h.k);
                  load(s, q + 2 * s.width, 3 * s.width, 1, h.v);
                  transpose_blocks(s, h.k, h.k_transposed);
                  for (Index first = 0; first < s.sequence; first += query_block) {
                    const Index rows = std::min(query_block, s.sequence - first);
                    forward_rows(s, h, first, rows, &log_sum(head, 0));
                    store(s, h.out, rows, 1, result + first * s.width, s.width);
                  }
                });
}

template <class T>
void attention_backward(const Execution& exec, const AttentionShape& s, Matrix<const T> qkv,
                        Matrix<const T> out, Matrix<const float> log_sum, Matrix<const T> dout,
                        Matrix<T> dqkv, Vector<float> scratch) {
  for_each_head(exec, s, "kzero::kernels::attention_backward", scratch,
                [=](Index head, const HeadScratch& h) {
                  const Index d = s.head_width(), first_row = head / s.heads * s.sequence;
                  const Index column = head % s.heads * d, stride = 3 * s.width;
                  const T* q = &qkv(first_row, column);
                  load(s, q, stride, scale_of(s), h.q);
                  load(s, q + s.width, stride, 1, h.k);
                  load(s, q + 2 * s.width, stride, 1, h.v);
                  transpose_blocks(s, h.k, h.k_transposed);
                  transpose_blocks(s, h.v, h.v_transposed);
                  load(s, &dout(first_row, column), s.width, 1, h.dout);
                  load_delta(s, &out(first_row, column), h.dout, h.delta);
                  std::fill_n(h.dk, HeadScratch::rows(s) * HeadScratch::width(s), 0.0F);
                  std::fill_n(h.dv, HeadScratch::rows(s) * HeadScratch::width(s), 0.0F);
                  T* gradient = &dqkv(first_row, column);
                  for (Index first = 0; first < s.sequence; first += query_block) {
                    const Index rows = std::min(query_block, s.sequence - first);
                    for (Index key = 0; key < first + rows; key += key_block)
                      backward_tile(s, h, first, rows, key, &log_sum(head, 0));
                    store(s, h.out, rows, scale_of(s), gradient + first * stride, stride);
                  }
                  store(s, h.dk, s.sequence, 1, gradient + s.width, stride);
                  store(s, h.dv, s.sequence, 1, gradient + 2 * s.width, stride);
                });
}

#define KZERO_INSTANTIATE(T)                                                                    \
  template void attention_forward<T>(const Execution&, const AttentionShape&, Matrix<const T>,  \
                                     Matrix<T>, Matrix<float>, Vector<float>);                  \
  template void attention_backward<T>(const Execution&, const AttentionShape&, Matrix<const T>, \
                                      Matrix<const T>, Matrix<const float>, Matrix<const T>,    \
                                      Matrix<T>, Vector<float>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels::host
