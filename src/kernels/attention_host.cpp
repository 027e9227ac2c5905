#include "kernels/attention_host.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.hpp"
#include "kernels/exponential.hpp"
#include "tensor/tile.hpp"

namespace kzero::kernels {

namespace {

using tensor::Transpose;

// Rows of scores per thread: with T = 1024 they fill half of a 1 MiB second-level cache.
constexpr Index query_block = 128;

/// One thread's scratch: the head's q, k, v, out and their gradients converted to fp32, [T,d] each,
/// and two tiles [query_block,T].
struct HeadScratch {
  float *q, *k, *v, *dq, *dk, *dv, *dout, *out, *scores, *dscores;

  static Index elements(const AttentionShape& s) {
    return 8 * s.sequence * s.head_width() + 2 * query_block * s.sequence;
  }

  HeadScratch(const AttentionShape& s, float* base) {
    const Index rows = s.sequence * s.head_width();
    for (float** part : {&q, &k, &v, &dq, &dk, &dv, &dout, &out}) {
      *part = base;
      base += rows;
    }
    scores = base;
    dscores = base + query_block * s.sequence;
  }
};

template <class T>
void load(const T* from, Index stride, Index rows, Index width, float* to) {
  for (Index i = 0; i < rows; ++i) {
    detail::host_for(
        width, [=](Index j) { to[i * width + j] = static_cast<float>(from[i * stride + j]); });
  }
}

/// Loads the q, k and v of one head, which begin at `row` of a [B*T,3D] array.
template <class T>
void load_qkv(const AttentionShape& s, const T* row, const HeadScratch& h) {
  const Index d = s.head_width();
  load(row, 3 * s.width, s.sequence, d, h.q);
  load(row + s.width, 3 * s.width, s.sequence, d, h.k);
  load(row + 2 * s.width, 3 * s.width, s.sequence, d, h.v);
}

template <class T>
void store(const float* from, Index rows, Index width, T* to, Index stride) {
  for (Index i = 0; i < rows; ++i) {
    detail::host_for(width,
                     [=](Index j) { to[i * stride + j] = static_cast<T>(from[i * width + j]); });
  }
}

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

void forward_head(const AttentionShape& s, const HeadScratch& h, float* log_sum) {
  const Index d = s.head_width(), length = s.sequence;
  const float scale = 1.0F / std::sqrt(static_cast<float>(d));
  float inverse[query_block];
  for (Index first = 0; first < length; first += query_block) {
    const Index rows = std::min(query_block, length - first), columns = first + rows;
    tensor::multiply_tile(Transpose::no, Transpose::yes, rows, columns, d, scale, h.q + first * d,
                          d, h.k, d, 0, h.scores, columns);
    for (Index i = 0; i < rows; ++i) {
      const RowSum sum = softmax_row(h.scores + i * columns, first + i + 1, columns);
      log_sum[first + i] = sum.log;
      inverse[i] = sum.inverse;
    }
    tensor::multiply_tile(Transpose::no, Transpose::no, rows, d, columns, 1, h.scores, columns, h.v,
                          d, 0, h.out + first * d, d);
    for (Index i = 0; i < rows; ++i) {
      float* row = h.out + (first + i) * d;
      const float factor = inverse[i];
      detail::host_for(d, [=](Index j) { row[j] *= factor; });
    }
  }
}

void backward_head(const AttentionShape& s, const HeadScratch& h, const float* log_sum) {
  const Index d = s.head_width(), length = s.sequence;
  const float scale = 1.0F / std::sqrt(static_cast<float>(d));
  std::fill_n(h.dk, length * d, 0.0F);
  std::fill_n(h.dv, length * d, 0.0F);
  for (Index first = 0; first < length; first += query_block) {
    const Index rows = std::min(query_block, length - first), columns = first + rows;
    tensor::multiply_tile(Transpose::no, Transpose::yes, rows, columns, d, scale, h.q + first * d,
                          d, h.k, d, 0, h.scores, columns);
    tensor::multiply_tile(Transpose::no, Transpose::yes, rows, columns, d, 1, h.dout + first * d, d,
                          h.v, d, 0, h.dscores, columns);
    for (Index i = 0; i < rows; ++i) {
      const Index seen = first + i + 1, at = (first + i) * d;
      float* p = h.scores + i * columns;
      float* dp = h.dscores + i * columns;
      const float log_total = log_sum[first + i];
      const float *o = h.out + at, *g = h.dout + at;
      const float delta = detail::host_sum(d, [=](Index j) { return o[j] * g[j]; });
      detail::host_for(seen, [=](Index j) {
        p[j] = exponential(p[j] - log_total);
        dp[j] = scale * p[j] * (dp[j] - delta);
      });
      std::fill(p + seen, p + columns, 0.0F);
      std::fill(dp + seen, dp + columns, 0.0F);
    }
    tensor::multiply_tile(Transpose::no, Transpose::no, rows, d, columns, 1, h.dscores, columns,
                          h.k, d, 0, h.dq + first * d, d);
    tensor::multiply_tile(Transpose::yes, Transpose::no, columns, d, rows, 1, h.dscores, columns,
                          h.q + first * d, d, 1, h.dk, d);
    tensor::multiply_tile(Transpose::yes, Transpose::no, columns, d, rows, 1, h.scores, columns,
                          h.dout + first * d, d, 1, h.dv, d);
  }
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

Index host::attention_scratch_bytes(const AttentionShape& shape, Index threads) {
  return threads * HeadScratch::elements(shape) * static_cast<Index>(sizeof(float));
}

template <class T>
void host::attention_forward(const Execution& exec, const AttentionShape& s, Matrix<const T> qkv,
                             Matrix<T> out, Matrix<float> log_sum, Vector<float> scratch) {
  const Index d = s.head_width(), width = s.width;
  for_each_head(exec, s, "kzero::kernels::attention_forward", scratch,
                [=](Index head, const HeadScratch& h) {
                  const Index b = head / s.heads, column = head % s.heads * d;
                  load_qkv(s, &qkv(b * s.sequence, column), h);
                  forward_head(s, h, &log_sum(head, 0));
                  store(h.out, s.sequence, d, &out(b * s.sequence, column), width);
                });
}

template <class T>
void host::attention_backward(const Execution& exec, const AttentionShape& s, Matrix<const T> qkv,
                              Matrix<const T> out, Matrix<const float> log_sum,
                              Matrix<const T> dout, Matrix<T> dqkv, Vector<float> scratch) {
  const Index d = s.head_width(), width = s.width;
  for_each_head(exec, s, "kzero::kernels::attention_backward", scratch,
                [=](Index head, const HeadScratch& h) {
                  const Index b = head / s.heads, column = head % s.heads * d;
                  load_qkv(s, &qkv(b * s.sequence, column), h);
                  load(&out(b * s.sequence, column), width, s.sequence, d, h.out);
                  load(&dout(b * s.sequence, column), width, s.sequence, d, h.dout);
                  backward_head(s, h, &log_sum(head, 0));
                  T* gradient = &dqkv(b * s.sequence, column);
                  store(h.dq, s.sequence, d, gradient, 3 * width);
                  store(h.dk, s.sequence, d, gradient + width, 3 * width);
                  store(h.dv, s.sequence, d, gradient + 2 * width, 3 * width);
                });
}

#define KZERO_INSTANTIATE(T)                                                                       \
  template void host::attention_forward<T>(const Execution&, const AttentionShape&,                \
                                           Matrix<const T>, Matrix<T>, Matrix<float>,              \
                                           Vector<float>);                                         \
  template void host::attention_backward<T>(const Execution&, const AttentionShape&,               \
                                            Matrix<const T>, Matrix<const T>, Matrix<const float>, \
                                            Matrix<const T>, Matrix<T>, Vector<float>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
