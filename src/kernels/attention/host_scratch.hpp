// One thread's scratch for attention on hosts, and copies of a head's rows to and from it. Operands
// of products are elements E of depth<E> neighbouring terms of a sum (host/pairs.hpp): fp32 values,
// or pairs of bf16.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/attention/attention.hpp"
#include "kernels/host/transpose.hpp"

namespace kzero::kernels::host {

// A block of query rows and a block of keys form one tile of scores. The tile stays in a core's
// caches, together with a block each of q, k and v, which products read repeatedly.
inline constexpr Index query_block = 96;
inline constexpr Index key_block = 64;
static_assert(query_block % 2 == 0 && key_block % (2 * host_lanes) == 0 &&
              key_block % detail::lanes == 0);

/// Operands and results of a head's products. Rows are padded with zeros: T to full blocks of keys,
/// d to full vectors. An operand has up to three forms, whose elements are terms of sums
///   rows [T, d / depth]: along d
///   transposed, by blocks of keys [d / depth, key_block] each: along d
///   grouped [T / depth, d]: along T, which for fp32 is the same as rows
template <class E>
struct HeadScratch {
  E *q, *k, *v, *dout;             // rows; k and v are then converted to other forms
  E *k_transposed, *v_transposed;  //
  E *q_grouped, *k_grouped, *v_grouped, *dout_grouped;
  E* probabilities;                // forward: rows of a block of queries
  E *ds, *ds_grouped, *p_grouped;  // backward: of a tile
  float *dk, *dv, *delta, *scores, *dscores, *out;

  static Index rows(const AttentionShape& s) { return round_up(s.sequence, key_block); }
  static Index width(const AttentionShape& s) {
    return round_up(s.head_width, depth<E> * host_lanes);
  }
  static Index bytes(const AttentionShape& s) {
    HeadScratch measured(s, nullptr);
    return measured.end_;
  }

  HeadScratch(const AttentionShape& s, float* base) : base_(reinterpret_cast<std::byte*>(base)) {
    const Index head = rows(s) * width(s), tile = query_block * key_block;
    for (E** operand : {&q, &k, &v, &dout, &k_transposed, &v_transposed})
      *operand = take<E>(head / depth<E>);
    const std::pair<E**, E*> forms[] = {
        {&q_grouped, q}, {&k_grouped, k}, {&v_grouped, v}, {&dout_grouped, dout}};
    for (const auto& [grouped, same] : forms)
      *grouped = depth<E> == 1 ? same : take<E>(head / depth<E>);
    for (float** sum : {&dk, &dv}) *sum = take<float>(head);
    delta = take<float>(rows(s));
    scores = take<float>(query_block * rows(s));
    dscores = take<float>(tile);
    out = take<float>(query_block * width(s));
    if constexpr (depth<E> == 1) {
      probabilities = p_grouped = scores;
      ds = ds_grouped = dscores;
    } else {
      // Forward's rows and backward's tiles are never in use together.
      const Index shared = end_;
      probabilities = take<E>(query_block * rows(s) / depth<E>);
      const Index forward_end = std::exchange(end_, shared);
      for (E** operand : {&p_grouped, &ds, &ds_grouped}) *operand = take<E>(tile / depth<E>);
      end_ = std::max(end_, forward_end);
    }
  }

 private:
  /// Returns memory for `count` values; null while only the size is counted.
  template <class V>
  V* take(Index count) {
    auto* const address = base_ ? reinterpret_cast<V*>(base_ + end_) : nullptr;
    end_ += round_up(count * static_cast<Index>(sizeof(V)), 64);
    return address;
  }

  std::byte* base_;
  Index end_ = 0;
};

/// Prefetches a row that will be read or written soon. A head's rows are further apart than the
/// processor's own prefetching reaches.
template <int writes, class T>
void prefetch_row(const T* row, Index width) {
  constexpr Index line = 64 / sizeof(T);
  for (Index j = 0; j < width; j += line) __builtin_prefetch(row + j, writes);
}

inline constexpr Index rows_ahead = 8;

inline void load_row(const bf16* from, Index count, Bf16Pair* to) {
  std::memcpy(static_cast<void*>(to), from, static_cast<std::size_t>(count) * sizeof(bf16));
}
template <class T>
void load_row(const T* from, Index count, float* to) {
  detail::host_for(count, [=](Index j) { to[j] = static_cast<float>(from[j]); });
}

/// Loads the head's rows and zeros their padding.
template <class T, class E>
void load(const AttentionShape& s, const T* from, Index stride, E* to) {
  const Index d = s.head_width, width = HeadScratch<E>::width(s) / depth<E>;
  for (Index i = 0; i < s.sequence; ++i, from += stride, to += width) {
    prefetch_row<0>(from + rows_ahead * stride, d);
    std::fill_n(to + d / depth<E>, width - d / depth<E>, E{});
    load_row(from, d, to);
  }
  std::fill_n(to, (HeadScratch<E>::rows(s) - s.sequence) * width, E{});
}

/// Transposes loaded rows by blocks of keys.
template <class E>
void transpose_blocks(const AttentionShape& s, const E* from, E* to) {
  const Index width = HeadScratch<E>::width(s) / depth<E>;
  for (Index key = 0; key < s.sequence; key += key_block)
    transpose(key_block, width, from + key * width, width, to + key * width, key_block);
}

/// Groups loaded rows. fp32 rows are used as they are.
inline void group_rows(const AttentionShape& /*s*/, const float* /*rows*/, float* /*grouped*/) {}
void group_rows(const AttentionShape& s, const Bf16Pair* rows, Bf16Pair* grouped);

template <class T, class E>
void store(const AttentionShape& s, const float* from, Index rows, float factor, T* to,
           Index stride) {
  const Index d = s.head_width, width = HeadScratch<E>::width(s);
  for (Index i = 0; i < rows; ++i, from += width, to += stride) {
    prefetch_row<1>(to + rows_ahead * stride, d);
    detail::host_for(d, [=](Index j) { to[j] = static_cast<T>(factor * from[j]); });
  }
}

/// Computes every row's sum of out * dout.
template <class T>
void load_delta(const AttentionShape& s, const T* out, Index out_stride, const T* dout,
                Index dout_stride, float* delta) {
  for (Index i = 0; i < s.sequence; ++i, out += out_stride, dout += dout_stride) {
    prefetch_row<0>(out + rows_ahead * out_stride, s.head_width);
    delta[i] = detail::host_sum(s.head_width, [=](Index j) {
      return static_cast<float>(out[j]) * static_cast<float>(dout[j]);
    });
  }
}

}  // namespace kzero::kernels::host
