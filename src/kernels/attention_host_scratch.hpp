// One thread's scratch of attention on hosts, and how a head's rows get there and back.
#pragma once

#include <algorithm>

#include "kernels/attention.hpp"
#include "kernels/host_transpose.hpp"

namespace kzero::kernels::host {

// A block of query rows and a block of keys meet in one tile of scores: with a block each of q, k
// and v, which products read again and again, it stays in a core's caches.
inline constexpr Index query_block = 96;
inline constexpr Index key_block = 64;

/// What a head's products read and write, in fp32. Rows [T,d] are padded with zeros to whole blocks
/// of keys and whole vectors; transposes lie by blocks of keys, [padded d,key_block] each.
struct HeadScratch {
  float *q, *k, *v, *k_transposed, *v_transposed, *dk, *dv, *dout, *delta, *scores, *dscores, *out;

  static Index rows(const AttentionShape& s) { return round_up(s.sequence, key_block); }
  static Index width(const AttentionShape& s) { return round_up(s.head_width, host_lanes); }
  static Index elements(const AttentionShape& s) {
    return 8 * rows(s) * width(s) + rows(s) + query_block * (rows(s) + key_block + width(s));
  }

  HeadScratch(const AttentionShape& s, float* base) {
    for (float** part : {&q, &k, &v, &k_transposed, &v_transposed, &dk, &dv, &dout}) {
      *part = base;
      base += rows(s) * width(s);
    }
    delta = base;
    scores = delta + rows(s);
    dscores = scores + query_block * rows(s);
    out = dscores + query_block * key_block;
  }
};

/// Fetches a row that will be read or written soon. Rows of a head lie further apart than the
/// processor's own prefetching reaches.
template <int writes, class T>
void prefetch_row(const T* row, Index width) {
  constexpr Index line = 64 / sizeof(T);
  for (Index j = 0; j < width; j += line) __builtin_prefetch(row + j, writes);
}

inline constexpr Index rows_ahead = 8;

/// Loads the head's rows, times a factor, and zeros what pads them.
template <class T>
void load(const AttentionShape& s, const T* from, Index stride, float factor, float* to) {
  const Index d = s.head_width, width = HeadScratch::width(s);
  for (Index i = 0; i < s.sequence; ++i, from += stride, to += width) {
    prefetch_row<0>(from + rows_ahead * stride, d);
    detail::host_for(d, [=](Index j) { to[j] = factor * static_cast<float>(from[j]); });
    std::fill(to + d, to + width, 0.0F);
  }
  std::fill_n(to, (HeadScratch::rows(s) - s.sequence) * width, 0.0F);
}

/// Transposes loaded rows by blocks of keys.
inline void transpose_blocks(const AttentionShape& s, const float* from, float* to) {
  const Index width = HeadScratch::width(s);
  for (Index key = 0; key < s.sequence; key += key_block)
    transpose(key_block, width, from + key * width, width, to + key * width, key_block);
}

/// Stores rows of the head, times a factor.
template <class T>
void store(const AttentionShape& s, const float* from, Index rows, float factor, T* to,
           Index stride) {
  const Index d = s.head_width, width = HeadScratch::width(s);
  for (Index i = 0; i < rows; ++i, from += width, to += stride) {
    prefetch_row<1>(to + rows_ahead * stride, d);
    detail::host_for(d, [=](Index j) { to[j] = static_cast<T>(factor * from[j]); });
  }
}

/// Computes the sums of out * dout of every row; dout is loaded.
template <class T>
void load_delta(const AttentionShape& s, const T* out, Index stride, const float* dout,
                float* delta) {
  for (Index i = 0; i < s.sequence; ++i, out += stride, dout += HeadScratch::width(s)) {
    prefetch_row<0>(out + rows_ahead * stride, s.head_width);
    delta[i] = detail::host_sum(s.head_width,
                                [=](Index j) { return static_cast<float>(out[j]) * dout[j]; });
  }
}

}  // namespace kzero::kernels::host
