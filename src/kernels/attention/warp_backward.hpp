// Backward of warps.hpp. Warps with rows of queries compute dq; warps with rows of keys compute dk
// and dv. P and dS (equations in device_backward.hpp) stay in registers. Rows of keys have them
// transposed.
#pragma once

#include "kernels/attention/device_backward.hpp"
#include "kernels/attention/warp_forward.hpp"

namespace kzero::kernels {

/// The scores of 16 or 32 own rows with 16 others, and the gradients of the probabilities.
template <class Fragments, int down>
struct WarpScores {
  static constexpr int others = 16;  // at once
  using Sums = WarpSums<Fragments, down, 1>;
  using Factor = WarpFactor<Fragments, down, 1>;

  Sums probabilities, gradients;

  /// Turns scores into P and dO V^T into dS. log2_sum(place) and delta(place) return the values of
  /// a pair's queries, log2_sum in units of log 2. hidden(place, column) is true if the mask
  /// hides the score. If may_hide is false, no score is hidden. drop(place, column, x) applies
  /// dropout.
  template <class LogSum, class Delta, class Hidden, class Drop>
  KOKKOS_INLINE_FUNCTION void resolve(int lane, float log2_scale, const LogSum& log2_sum,
                                      const Delta& delta, bool may_hide, const Hidden& hidden,
                                      const Drop& drop) {
    probabilities.for_pairs(lane, [&](const PairPlace& at, float* p) {
      const Pack<float, 2> subtracted = log2_sum(at);
      for (int e = 0; e < 2; ++e)
        p[e] = Fragments::power_of_two(p[e] * log2_scale - subtracted.values[e]);
    });
    if (may_hide) {
      probabilities.for_pairs(lane, [&](const PairPlace& at, float* p) {
        for (int e = 0; e < 2; ++e) {
          if (hidden(at, at.column + e)) p[e] = 0;
        }
      });
    }
#pragma unroll
    for (int i = 0; i < Sums::pairs; ++i) {
      const PairPlace at = Sums::place(lane, i);
      const Pack<float, 2> subtracted = delta(at);
      float *p = probabilities.pair(i), *g = gradients.pair(i);
      for (int e = 0; e < 2; ++e) {
        g[e] = p[e] * (drop(at, at.column + e, g[e]) - subtracted.values[e]);
        p[e] = drop(at, at.column + e, p[e]);
      }
    }
  }
};

template <class Arithmetic, class T, int width, class Mask>
struct WarpAttentionQueryGradient {
  static constexpr int down = width <= 64 ? 2 : 1;
  using Blocks = WarpBlocks<Arithmetic, T, width, down>;
  using Fragments = typename Blocks::Fragments;
  using Scores = WarpScores<Fragments, down>;
  static constexpr int keys = Scores::others, rows = Blocks::Sums::rows;

  BackwardArrays<T, Mask> x;

  template <class Thread>
  KOKKOS_INLINE_FUNCTION void run(const Thread& thread, int rank, T* scratch) const {
    const AttentionShape& shape = x.shape;
    const WarpQueries<Blocks, Mask> at(shape, x.mask, rank, thread.thread);
    T* gradient_tile = scratch + Blocks::own * Blocks::stride;
    Blocks::template copy<Blocks::own>(thread.thread, {x.in.q, shape, at.head, shape.heads},
                                       at.first, scratch);
    Blocks::template copy<Blocks::own>(thread.thread, {x.dout, shape, at.head, shape.heads},
                                       at.first, gradient_tile);
    Fragments::wait_for_copies();
    thread.team.team_barrier();
    const typename Blocks::Factor q(Blocks::rows_from(scratch, at.warp_row), at.lane);
    const typename Blocks::Factor dout(Blocks::rows_from(gradient_tile, at.warp_row), at.lane);
    thread.team.team_barrier();

    float log2_sum[rows], delta[rows];
    load_values(at.head, at.row, at.lane, log2_sum, delta);
    const WarpFirstKeys<Blocks, Mask> first_keys(at);
    typename Blocks::Sums dq;
    const auto add_keys = [&](const Tile<const T>& k, const Tile<const T>& v, int ahead) {
      Scores s;
      add_transposed(s.probabilities, q, k, at.lane);
      add_transposed(s.gradients, dout, v, at.lane);
      const auto value = [](const float(&of_rows)[rows]) {
        return [&](const PairPlace& pair) {
          return Pack<float, 2>{{of_rows[pair.slot], of_rows[pair.slot]}};
        };
      };
      s.resolve(
          at.lane, x.scale * log2_of_e, value(log2_sum), value(delta),
          ahead < keys - 1 || first_keys.may_hide(ahead),
          [&](const PairPlace& place, int column) {
            return column > ahead + place.row || first_keys.hides(place.slot, column, ahead);
          },
          [&](const PairPlace& place, int column, float term) {
            return dropped(at.seen, at.head % shape.heads, at.row + place.row,
                           at.row - ahead + column, term);
          });
      add(dq, typename Scores::Factor(s.gradients), k, at.lane);
    };
    at.template for_keys<keys>(thread, shape, x.in, scratch, add_keys);
    float factors[rows];
    for (float& factor : factors) factor = x.scale;
    Blocks::write(dq, {x.gradients.q, shape, at.head, shape.heads}, at.row, at.lane, factors);
  }

  KOKKOS_INLINE_FUNCTION void load_values(Index head, Index row, int lane, float (&log2_sum)[rows],
                                          float (&delta)[rows]) const {
    Blocks::Sums::for_rows(lane, [&](int slot, int i) {
      const bool is_there = row + i < x.shape.sequence;
      log2_sum[slot] = is_there ? x.log_sum(head, row + i) * log2_of_e : 0.0F;
      delta[slot] = is_there ? x.delta(head, row + i) : 0.0F;
    });
  }
};

template <class Arithmetic, class T, int width, class Mask>
struct WarpAttentionKeyGradient {
  using Blocks = WarpBlocks<Arithmetic, T, width, 1>;
  using Fragments = typename Blocks::Fragments;
  using Scores = WarpScores<Fragments, 1>;
  static constexpr int queries = Scores::others, rows = Blocks::Sums::rows;

  BackwardArrays<T, Mask> x;

  /// The queries of a group's heads. Tile n belongs to the group's head n / blocks.
  struct Queries {
    int sequence, head;  // of the group's first head
    int first, blocks;
  };

  template <class Thread>
  KOKKOS_INLINE_FUNCTION void run(const Thread& thread, int rank, T* scratch) const {
    const AttentionShape& shape = x.shape;
    const int blocks = static_cast<int>(blocks_of(shape, Blocks::own));
    const int kv_head = rank / blocks, first = rank % blocks * Blocks::own;
    const int lane = Blocks::lane(thread.thread), warp_row = Blocks::warp_row(thread.thread);
    T* value_tile = scratch + Blocks::own * Blocks::stride;
    Blocks::template copy<Blocks::own>(thread.thread, {x.in.k, shape, kv_head, shape.kv_heads},
                                       first, scratch);
    Blocks::template copy<Blocks::own>(thread.thread, {x.in.v, shape, kv_head, shape.kv_heads},
                                       first, value_tile);
    Fragments::wait_for_copies();
    thread.team.team_barrier();
    const typename Blocks::Factor k(Blocks::rows_from(scratch, warp_row), lane);
    const typename Blocks::Factor v(Blocks::rows_from(value_tile, warp_row), lane);
    thread.team.team_barrier();

    const int group = static_cast<int>(shape.group());
    const int kv_heads = static_cast<int>(shape.kv_heads);
    const Mask seen = x.mask.of_sequence(kv_head / kv_heads);
    const int end = static_cast<int>(seen.end_of_queries(first + Blocks::own - 1));
    const Queries from{kv_head / kv_heads, kv_head % kv_heads * group, first,
                       (end - first + Blocks::other - 1) / Blocks::other};
    const WarpQueryEnds<Blocks, Mask> ends(seen, first + warp_row, lane);
    auto* values = reinterpret_cast<float*>(scratch + Blocks::values);
    typename Blocks::Sums dk, dv;
    Blocks::for_tiles(
        thread, from.blocks * group, scratch,
        [&](int n, T* pair) {
          copy(thread.thread, from, n, pair, values + n % 2 * 2 * Blocks::other);
        },
        [&](int n, const T* pair) {
          const float* of_pair = values + n % 2 * 2 * Blocks::other;
          // Number of rows by which the tile's first query is ahead of the warp's first key.
          const int ahead = n % from.blocks * Blocks::other - warp_row;
          const int skipped = ahead < 0 ? -ahead / queries * queries : 0;
#pragma unroll 1
          for (int query = skipped; query < Blocks::other && ends.may_see(ahead + query);
               query += queries)
            add_queries(k, v, pair, of_pair, query, ahead + query, lane, ends, dk, dv,
                        [&](const PairPlace& place, int column, float term) {
                          const Index key = first + warp_row;
                          return dropped(seen, from.head + n / from.blocks,
                                         key + ahead + query + column, key + place.row, term);
                        });
        });
    float factors[rows];
    for (float& factor : factors) factor = x.scale;
    Blocks::write(dk, {x.gradients.k, shape, kv_head, shape.kv_heads}, first + warp_row, lane,
                  factors);
    for (float& factor : factors) factor = 1.0F;
    Blocks::write(dv, {x.gradients.v, shape, kv_head, shape.kv_heads}, first + warp_row, lane,
                  factors);
  }

  /// Begins to copy tile n of q and dout, and their rows' log_sum and delta. Missing rows are zero
  /// and add zero to dk and dv.
  KOKKOS_INLINE_FUNCTION void copy(int thread, const Queries& from, int n, T* pair,
                                   float* values) const {
    const AttentionShape& shape = x.shape;
    const Index head = from.head + n / from.blocks;
    const Index query = from.first + n % from.blocks * Blocks::other;
    const typename Blocks::Rows::InSequence at{from.sequence, head};
    Blocks::template copy<Blocks::other>(thread, {x.in.q, shape, at}, query, pair);
    Blocks::template copy<Blocks::other>(thread, {x.dout, shape, at}, query, pair + Blocks::tile);
    constexpr int count = 2 * Blocks::other;
#pragma unroll
    for (int i = 0; i < count; i += Blocks::threads) {
      const int number = i + thread;
      if (count % Blocks::threads != 0 && number >= count) break;
      const Index row = query + number % Blocks::other;
      const bool is_there = row < shape.sequence;
      const float* of_rows = number < Blocks::other ? x.log_sum.data() : x.delta.data();
      of_rows += (from.sequence * shape.heads + head) * shape.sequence;
      Fragments::template copy<4>(values + number, of_rows + (is_there ? row : 0), is_there);
    }
  }

  /// Adds the contributions of 16 queries of a tile to the warp's rows. The first query is `ahead`
  /// rows after the first key.
  template <class Drop>
  KOKKOS_INLINE_FUNCTION void add_queries(const typename Blocks::Factor& k,
                                          const typename Blocks::Factor& v, const T* pair,
                                          const float* values, int query, int ahead, int lane,
                                          const WarpQueryEnds<Blocks, Mask>& ends,
                                          typename Blocks::Sums& dk, typename Blocks::Sums& dv,
                                          const Drop& drop) const {
    const Tile<const T> q = Blocks::rows_from(pair, query);
    const Tile<const T> dout = Blocks::rows_from(pair + Blocks::tile, query);
    Scores s;
    add_transposed(s.probabilities, k, q, lane);
    add_transposed(s.gradients, v, dout, lane);
    const auto log2_sum = [&](const PairPlace& at) {
      auto log_sums = Pack<float, 2>::at(values + query + at.column);
      for (float& log_sum : log_sums.values) log_sum *= log2_of_e;
      return log_sums;
    };
    const auto delta = [&](const PairPlace& at) {
      return Pack<float, 2>::at(values + Blocks::other + query + at.column);
    };
    s.resolve(
        lane, x.scale * log2_of_e, log2_sum, delta,
        ahead < Blocks::warp_rows - 1 || ends.may_hide(ahead + queries),
        [&](const PairPlace& place, int column) {
          return place.row > ahead + column || ends.hides(place.slot, ahead + column);
        },
        drop);
    add(dv, typename Scores::Factor(s.probabilities), dout, lane);
    add(dk, typename Scores::Factor(s.gradients), q, lane);
  }
};

}  // namespace kzero::kernels
