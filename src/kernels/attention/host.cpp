#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "kernels/attention/backends.hpp"
#include "kernels/attention/host_blocks.hpp"
#include "kernels/host/arithmetic.hpp"
#include "kernels/host/product.hpp"

namespace kzero::kernels::host {

namespace {

/// A thread's scratch, its multiplication, and the factor on scores. fp32 queries are multiplied by
/// the factor when they are loaded. For 16-bit queries that product would be rounded, so their
/// scores are multiplied instead.
template <class E>
struct HeadThread : HeadScratch<E> {
  void (*multiply)(const HostProduct<E>&);
  float scale;

  float scale_of_scores() const { return depth<E> == 1 ? 1.0F : scale; }
};

/// 1 / (sum relative to the largest score), and the log-sum-exp, of one softmax.
struct RowSum {
  float inverse;
  float log;
};

/// Turns the first `seen` scores of a row into unnormalised probabilities and zeros the rest.
/// Dividing a row's output, d wide, is cheaper than dividing its probabilities.
RowSum softmax_row(float* row, float scale, Index seen, Index columns) {
  // Fills the last vector: keys that the mask hides get minus infinity.
  const Index whole = round_up(seen, detail::lanes);
  std::fill(row + seen, row + whole, -Kokkos::Experimental::infinity_v<float>);
  const float largest = scale * detail::host_max(whole, [=](Index j) { return row[j]; });
  const float total = detail::sum_vectors(whole, [=](Index j) {
    const HostVector e = exponential(scale * load_vector(row + j) - largest);
    store_vector(row + j, e);
    return e;
  });
  std::fill(row + whole, row + columns, 0.0F);
  return {1.0F / total, largest + std::log(total)};
}

/// Does the same for the scores [hidden, seen) and zeros the others.
RowSum softmax_row(float* row, float scale, Index hidden, Index seen, Index columns) {
  const Index begin = hidden / detail::lanes * detail::lanes;
  std::fill(row, row + begin, 0.0F);
  std::fill(row + begin, row + hidden, -Kokkos::Experimental::infinity_v<float>);
  return softmax_row(row + begin, scale, seen - begin, columns - begin);
}

/// Computes a block of query rows of the head's output, and their log-sums.
template <class E, class Mask>
void forward_rows(const AttentionShape& s, const HeadThread<E>& h, const QueryBlock<Mask>& block,
                  float* log_sum) {
  const Index width = HeadScratch<E>::width(s), row_elements = width / depth<E>;
  const Index first = block.first, rows = block.rows, end = block.end();
  const Index first_key = block.first_key(), columns = round_up(end, key_block) - first_key;
  for (Index key = first_key; key < end; key += key_block) {
    const Seeing seeing(block, key);
    h.multiply({.m = seeing.count,
                .n = key_block,
                .k = ceil_div(s.head_width, depth<E>),
                .a = {h.q + (first + seeing.begin) * row_elements, row_elements},
                .b = h.k_transposed + key * row_elements,
                .b_stride = key_block,
                .c = h.scores + seeing.begin * columns + key - first_key,
                .c_stride = columns});
  }
  const float scale = h.scale_of_scores();
  float inverse[query_block];
  for (Index i = 0; i < rows; ++i) {
    float* scores = h.scores + i * columns;
    const Index seen = first + i + 1 - first_key;
    RowSum sum{};
    if constexpr (Mask::has_documents) {
      const Index hidden = block.mask.first_key(first + i) - first_key;
      sum = softmax_row(scores, scale, hidden, seen, columns);
    } else {
      sum = softmax_row(scores, scale, seen, columns);
    }
    drop_weights(block, i, first_key, round_up(seen, key_block), scores);
    if constexpr (depth<E> == 2) round_row(scores, columns, h.probabilities + i * columns / 2);
    log_sum[first + i] = sum.log;
    inverse[i] = sum.inverse;
  }
  begin_sums<Mask>(h.out, rows * width);
  for (Index key = first_key; key < end; key += key_block) {
    const Seeing seeing(block, key);
    h.multiply({.m = seeing.count,
                .n = width,
                .k = key_block / depth<E>,
                .a = {h.probabilities + (seeing.begin * columns + key - first_key) / depth<E>,
                      columns / depth<E>},
                .b = h.v_grouped + key * row_elements,
                .b_stride = width,
                .c = h.out + seeing.begin * width,
                .c_stride = width,
                .adds = Mask::has_documents || key > 0});
  }
  for (Index i = 0; i < rows; ++i) {
    float* row = h.out + i * width;
    const float factor = inverse[i];
    detail::host_for(s.head_width, [=](Index j) { row[j] *= factor; });
  }
}

/// Turns row i of a tile of scores and of the probabilities' gradients into probabilities and the
/// gradients of scores, without the factor on scores.
void score_gradients(float* p, float* dp, float scale, Index seen, float log_total, float delta) {
  const Index whole = round_up(seen, detail::lanes);
  for (Index j = 0; j < whole; j += host_lanes) {
    const HostVector probability = exponential(scale * load_vector(p + j) - log_total);
    store_vector(p + j, probability);
    store_vector(dp + j, probability * (load_vector(dp + j) - delta));
  }
  std::fill(p + seen, p + key_block, 0.0F);
  std::fill(dp + seen, dp + key_block, 0.0F);
}

/// Rounds two rows of a tile to their grouped forms. The second may be missing (-1).
void round_tile_rows(const HeadScratch<Bf16Pair>& h, Index first, Index second) {
  const auto round = [=](const float* rows, Bf16Pair* to) {
    round_rows(rows + first * key_block, second < 0 ? nullptr : rows + second * key_block,
               key_block, to + first / 2 * key_block);
  };
  round(h.scores, h.p_grouped);
  round(h.dscores, h.ds_grouped);
}

/// Does the same for all rows of a tile, and rounds operands to their 16-bit forms.
template <class E, class Mask>
void score_gradients(const HeadThread<E>& h, const QueryBlock<Mask>& block, const Seeing& seeing,
                     Index first_key, const float* log_sum) {
  const float scale = h.scale_of_scores();
  const Index first = block.first, end = seeing.begin + seeing.count;
  for (Index i = seeing.begin; i < end; ++i) {
    float *p = h.scores + i * key_block, *dp = h.dscores + i * key_block;
    const Index seen = std::min(first + i + 1 - first_key, key_block);
    drop_weights(block, i, first_key, key_block, dp);
    score_gradients(p, dp, scale, seen, log_sum[first + i], h.delta[first + i]);
    drop_weights(block, i, first_key, key_block, p);
    if constexpr (Mask::has_documents) {
      const Index hidden = std::max<Index>(0, block.mask.first_key(first + i) - first_key);
      std::fill_n(p, hidden, 0.0F);
      std::fill_n(dp, hidden, 0.0F);
    }
    if constexpr (depth<E> == 2) {
      round_row(dp, key_block, h.ds + i * key_block / 2);
      if (i % 2 == 1) round_tile_rows(h, i - 1, i);
    }
  }
  if constexpr (depth<E> == 2) {
    if (end % 2 == 1) round_tile_rows(h, end - 1, -1);
  }
}

/// Adds the contributions of a block of query rows and one block of keys to the gradients: to dq in
/// h.out, to dk and dv.
template <class E, class Mask>
void backward_tile(const AttentionShape& s, const HeadThread<E>& h, const QueryBlock<Mask>& block,
                   Index key, const float* log_sum) {
  const Index width = HeadScratch<E>::width(s), row_elements = width / depth<E>;
  const Seeing seeing(block, key);
  const Index row = block.first + seeing.begin, in_tile = seeing.begin * key_block;
  HostProduct<E> tile{.m = seeing.count,
                      .n = key_block,
                      .k = ceil_div(s.head_width, depth<E>),
                      .a = {h.q + row * row_elements, row_elements},
                      .b = h.k_transposed + key * row_elements,
                      .b_stride = key_block,
                      .c = h.scores + in_tile,
                      .c_stride = key_block};
  h.multiply(tile);
  tile.a.data = h.dout + row * row_elements, tile.b = h.v_transposed + key * row_elements;
  tile.c = h.dscores + in_tile;
  h.multiply(tile);
  score_gradients(h, block, seeing, key, log_sum);
  h.multiply({.m = seeing.count,
              .n = width,
              .k = key_block / depth<E>,
              .a = {h.ds + in_tile / depth<E>, key_block / depth<E>},
              .b = h.k_grouped + key * row_elements,
              .b_stride = width,
              .c = h.out + seeing.begin * width,
              .c_stride = width,
              .adds = Mask::has_documents || key > 0});
  HostProduct<E> keys{.m = key_block,
                      .n = width,
                      .k = ceil_div(seeing.count, depth<E>),
                      .a = {h.ds_grouped + in_tile / depth<E>, 1, key_block},
                      .b = h.q_grouped + row * row_elements,
                      .b_stride = width,
                      .c = h.dk + key * width,
                      .c_stride = width,
                      .adds = true};
  h.multiply(keys);
  keys.a.data = h.p_grouped + in_tile / depth<E>, keys.b = h.dout_grouped + row * row_elements;
  keys.c = h.dv + key * width;
  h.multiply(keys);
}

/// Runs work(head, is the thread's first, scratch) for `heads` heads. A thread has adjacent heads,
/// in ascending order.
template <class E, class F>
void for_each_head(const Execution& exec, const AttentionProblem& problem, Index heads,
                   const char* label, Vector<float> scratch, const ProductBackend<E>& products,
                   const F& work) {
  const AttentionShape s = problem.shape;
  const float scale = problem.factor();
  const Index per_thread = HeadScratch<E>::bytes(s) / static_cast<Index>(sizeof(float));
  const Index slots = static_cast<Index>(scratch.extent(0)) / per_thread;
  KZERO_REQUIRE(slots > 0, ExitCode::other, "internal error: no scratch was planned for attention");
  // One slot per thread. Work is distributed by slot, so that slots never exceed the planned
  // number.
  Kokkos::parallel_for(label, tensor::Range(exec, 0, slots), [=](Index slot) {
    const HeadThread<E> h{{s, scratch.data() + slot * per_thread}, products.multiply, scale};
    const Index first = part_begin(heads, slots, slot);
    products.begin();
    for (Index i = 0; i < part_size(heads, slots, slot); ++i) work(first + i, i == 0, h);
    products.end();
  });
}

/// One head's rows: [T,d] of sequence head / heads.
template <class T>
T* rows_of(const AttentionShape& s, const HeadColumns<T>& columns, Index head, Index heads) {
  return columns.data + head / heads * s.sequence * columns.stride + head % heads * s.head_width;
}

template <class T, class E>
void load_queries(const AttentionShape& s, const HeadThread<E>& h, const HeadColumns<const T>& q,
                  Index head) {
  load(s, rows_of(s, q, head, s.heads), q.stride, h.q);
  if constexpr (depth<E> == 1) {
    E* const to = h.q;
    const float scale = h.scale;
    detail::host_for(s.sequence * HeadScratch<E>::width(s), [=](Index i) { to[i] *= scale; });
  }
}

/// Computes dq of one query head and adds its share to dk and dv.
template <class T, class E, class Mask>
void backward_head(const AttentionShape& s, const HeadThread<E>& h, const Mask& mask, Index head,
                   const HeadColumns<const T>& q, const HeadColumns<const T>& out,
                   const HeadColumns<const T>& dout, const HeadColumns<T>& dq,
                   const float* log_sum) {
  const T* dout_rows = rows_of(s, dout, head, s.heads);
  load_queries(s, h, q, head);
  load(s, dout_rows, dout.stride, h.dout);
  group_rows(s, h.q, h.q_grouped);
  group_rows(s, h.dout, h.dout_grouped);
  load_delta(s, rows_of(s, out, head, s.heads), out.stride, dout_rows, dout.stride, h.delta);
  T* gradient = rows_of(s, dq, head, s.heads);
  for (Index first = 0; first < s.sequence; first += query_block) {
    const QueryBlock<Mask> block{first, std::min(query_block, s.sequence - first), mask,
                                 head % s.heads};
    begin_sums<Mask>(h.out, block.rows * HeadScratch<E>::width(s));
    for (Index key = block.first_key(); key < block.end(); key += key_block)
      backward_tile(s, h, block, key, log_sum);
    store<T, E>(s, h.out, block.rows, h.scale, gradient + first * dq.stride, dq.stride);
  }
}

}  // namespace

void group_rows(const AttentionShape& s, const Bf16Pair* rows, Bf16Pair* grouped) {
  const Index width = HeadScratch<Bf16Pair>::width(s);
  for (Index i = 0; i < HeadScratch<Bf16Pair>::rows(s); i += 2, rows += width, grouped += width)
    interleave(rows, rows + width / 2, width, grouped);
}

template <class T>
Index Attention<T>::scratch_bytes(Index threads) const {
  return threads * HeadScratch<HostElement<T>>::bytes(problem_.shape);
}

template <class T>
void Attention<T>::forward(const Execution& exec, const HeadOperands<const T>& in,
                           const AttentionRows& rows, Matrix<T> out, Matrix<float> log_sum) const {
  with_mask(rows, problem_.shape.sequence,
            [&](const auto& mask) { forward_with(exec, in, mask, out, log_sum); });
}

template <class T>
template <class Mask>
void Attention<T>::forward_with(const Execution& exec, const HeadOperands<const T>& in,
                                const Mask& all, Matrix<T> out, Matrix<float> log_sum) const {
  using E = HostElement<T>;
  const AttentionShape s = problem_.shape;
  const auto work = [=](Index head, bool is_first, const HeadThread<E>& h) {
    const Mask mask = all.of_sequence(head / s.heads);
    load_queries(s, h, in.q, head);
    if (is_first || head % s.group() == 0) {  // else the previous head's keys and values are reused
      const Index kv_head = head / s.group();
      load(s, rows_of(s, in.k, kv_head, s.kv_heads), in.k.stride, h.k);
      load(s, rows_of(s, in.v, kv_head, s.kv_heads), in.v.stride, h.v);
      transpose_blocks(s, h.k, h.k_transposed);
      group_rows(s, h.v, h.v_grouped);
    }
    const Index stride = out.extent(1);
    T* result = rows_of(s, HeadColumns<T>{out.data(), stride}, head, s.heads);
    for (Index first = 0; first < s.sequence; first += query_block) {
      const QueryBlock<Mask> block{first, std::min(query_block, s.sequence - first), mask,
                                   head % s.heads};
      forward_rows(s, h, block, &log_sum(head, 0));
      store<T, E>(s, h.out, block.rows, 1, result + first * stride, stride);
    }
  };
  for_each_head<E>(exec, problem_, s.batch * s.heads, "kzero::kernels::attention_forward", scratch_,
                   products_, work);
}

template <class T>
void Attention<T>::backward(const Execution& exec, const HeadOperands<const T>& in,
                            const AttentionRows& rows, Matrix<const T> out,
                            Matrix<const float> log_sum, Matrix<const T> dout,
                            const HeadOperands<T>& gradients) const {
  with_mask(rows, problem_.shape.sequence, [&](const auto& mask) {
    backward_with(exec, in, mask, out, log_sum, dout, gradients);
  });
}

template <class T>
template <class Mask>
void Attention<T>::backward_with(const Execution& exec, const HeadOperands<const T>& in,
                                 const Mask& all, Matrix<const T> out, Matrix<const float> log_sum,
                                 Matrix<const T> dout, const HeadOperands<T>& gradients) const {
  using E = HostElement<T>;
  const AttentionShape s = problem_.shape;
  const Index width = s.width();
  const auto work = [=](Index kv_head, bool /*is_first*/, const HeadThread<E>& h) {
    const Mask mask = all.of_sequence(kv_head / s.kv_heads);
    load(s, rows_of(s, in.k, kv_head, s.kv_heads), in.k.stride, h.k);
    load(s, rows_of(s, in.v, kv_head, s.kv_heads), in.v.stride, h.v);
    transpose_blocks(s, h.k, h.k_transposed);
    transpose_blocks(s, h.v, h.v_transposed);
    group_rows(s, h.k, h.k_grouped);
    std::fill_n(h.dk, HeadScratch<E>::rows(s) * HeadScratch<E>::width(s), 0.0F);
    std::fill_n(h.dv, HeadScratch<E>::rows(s) * HeadScratch<E>::width(s), 0.0F);
    for (Index i = 0; i < s.group(); ++i) {
      const Index head = kv_head * s.group() + i;
      backward_head<T>(s, h, mask, head, in.q, {out.data(), width}, {dout.data(), width},
                       gradients.q, &log_sum(head, 0));
    }
    const auto store_sum = [&](const float* sum, float factor, const HeadColumns<T>& to) {
      store<T, E>(s, sum, s.sequence, factor, rows_of(s, to, kv_head, s.kv_heads), to.stride);
    };
    store_sum(h.dk, h.scale_of_scores(), gradients.k);
    store_sum(h.dv, 1, gradients.v);
  };
  for_each_head<E>(exec, problem_, s.batch * s.kv_heads, "kzero::kernels::attention_backward",
                   scratch_, products_, work);
}

#define KZERO_INSTANTIATE(T) template class Attention<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels::host
