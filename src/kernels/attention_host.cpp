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
  const Index d = s.head_width, width = HeadScratch::width(s), end = first + rows;
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
  const Index d = s.head_width, width = HeadScratch::width(s);
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
  return 1.0F / std::sqrt(static_cast<float>(s.head_width));
}

/// Runs work(head, is the thread's first, scratch) for `heads` heads; a thread has neighbouring
/// ones, in ascending order.
template <class F>
void for_each_head(const Execution& exec, const AttentionShape& s, Index heads, const char* label,
                   Vector<float> scratch, const F& work) {
  const Index per_thread = HeadScratch::elements(s);
  const Index slots = static_cast<Index>(scratch.extent(0)) / per_thread;
  KZERO_REQUIRE(slots > 0, ExitCode::other, "internal error: no scratch was planned for attention");
  // One slot per thread: work is distributed by slot, so that slots never exceed the planned
  // number.
  Kokkos::parallel_for(label, tensor::Range(exec, 0, slots), [=](Index slot) {
    const HeadScratch h(s, scratch.data() + slot * per_thread);
    const Index first = part_begin(heads, slots, slot);
    for (Index i = 0; i < part_size(heads, slots, slot); ++i) work(first + i, i == 0, h);
  });
}

/// One head's rows: [T,d] of sequence head / heads.
template <class T>
T* rows_of(const AttentionShape& s, const HeadColumns<T>& columns, Index head, Index heads) {
  return columns.data + head / heads * s.sequence * columns.stride + head % heads * s.head_width;
}

}  // namespace

Index attention_scratch_bytes(const AttentionShape& shape, Index threads) {
  return threads * HeadScratch::elements(shape) * static_cast<Index>(sizeof(float));
}

template <class T>
void attention_forward(const Execution& exec, const AttentionShape& s,
                       const HeadOperands<const T>& in, Matrix<T> out, Matrix<float> log_sum,
                       Vector<float> scratch) {
  const auto work = [=](Index head, bool is_first, const HeadScratch& h) {
    load(s, rows_of(s, in.q, head, s.heads), in.q.stride, scale_of(s), h.q);
    if (is_first || head % s.group() == 0) {  // else the predecessor's keys and values serve
      const Index kv_head = head / s.group();
      load(s, rows_of(s, in.k, kv_head, s.kv_heads), in.k.stride, 1, h.k);
      load(s, rows_of(s, in.v, kv_head, s.kv_heads), in.v.stride, 1, h.v);
      transpose_blocks(s, h.k, h.k_transposed);
    }
    const Index stride = out.extent(1);
    T* result = rows_of(s, HeadColumns<T>{out.data(), stride}, head, s.heads);
    for (Index first = 0; first < s.sequence; first += query_block) {
      const Index rows = std::min(query_block, s.sequence - first);
      forward_rows(s, h, first, rows, &log_sum(head, 0));
      store(s, h.out, rows, 1, result + first * stride, stride);
    }
  };
  for_each_head(exec, s, s.batch * s.heads, "kzero::kernels::attention_forward", scratch, work);
}

namespace {

/// Computes dq of one query head and adds its share to dk and dv.
template <class T>
void backward_head(const AttentionShape& s, const HeadScratch& h, Index head,
                   const HeadColumns<const T>& q, const HeadColumns<const T>& out,
                   const HeadColumns<const T>& dout, const HeadColumns<T>& dq,
                   const float* log_sum) {
  load(s, rows_of(s, q, head, s.heads), q.stride, scale_of(s), h.q);
  load(s, rows_of(s, dout, head, s.heads), dout.stride, 1, h.dout);
  load_delta(s, rows_of(s, out, head, s.heads), out.stride, h.dout, h.delta);
  T* gradient = rows_of(s, dq, head, s.heads);
  for (Index first = 0; first < s.sequence; first += query_block) {
    const Index rows = std::min(query_block, s.sequence - first);
    for (Index key = 0; key < first + rows; key += key_block)
      backward_tile(s, h, first, rows, key, log_sum);
    store(s, h.out, rows, scale_of(s), gradient + first * dq.stride, dq.stride);
  }
}

}  // namespace

template <class T>
void attention_backward(const Execution& exec, const AttentionShape& s,
                        const HeadOperands<const T>& in, Matrix<const T> out,
                        Matrix<const float> log_sum, Matrix<const T> dout,
                        const HeadOperands<T>& gradients, Vector<float> scratch) {
  const Index width = s.width();
  const auto work = [=](Index kv_head, bool /*is_first*/, const HeadScratch& h) {
    load(s, rows_of(s, in.k, kv_head, s.kv_heads), in.k.stride, 1, h.k);
    load(s, rows_of(s, in.v, kv_head, s.kv_heads), in.v.stride, 1, h.v);
    transpose_blocks(s, h.k, h.k_transposed);
    transpose_blocks(s, h.v, h.v_transposed);
    std::fill_n(h.dk, HeadScratch::rows(s) * HeadScratch::width(s), 0.0F);
    std::fill_n(h.dv, HeadScratch::rows(s) * HeadScratch::width(s), 0.0F);
    for (Index i = 0; i < s.group(); ++i) {
      const Index head = kv_head * s.group() + i;
      backward_head<T>(s, h, head, in.q, {out.data(), width}, {dout.data(), width}, gradients.q,
                       &log_sum(head, 0));
    }
    const auto store_sum = [&](const float* sum, const HeadColumns<T>& to) {
      store(s, sum, s.sequence, 1, rows_of(s, to, kv_head, s.kv_heads), to.stride);
    };
    store_sum(h.dk, gradients.k);
    store_sum(h.dv, gradients.v);
  };
  for_each_head(exec, s, s.batch * s.kv_heads, "kzero::kernels::attention_backward", scratch, work);
}

#define KZERO_INSTANTIATE(T)                                                                  \
  template void attention_forward<T>(const Execution&, const AttentionShape&,                 \
                                     const HeadOperands<const T>&, Matrix<T>, Matrix<float>,  \
                                     Vector<float>);                                          \
  template void attention_backward<T>(                                                        \
      const Execution&, const AttentionShape&, const HeadOperands<const T>&, Matrix<const T>, \
      Matrix<const float>, Matrix<const T>, const HeadOperands<T>&, Vector<float>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels::host
