// Backward of attention_warps.hpp: warps with rows of queries compute dq, warps with rows of keys
// dk and dv. P and dS (attention_device_backward.hpp has the equations) stay in registers, where
// rows of keys have them transposed.
#pragma once

#include "kernels/attention_device_backward.hpp"
#include "kernels/attention_warp_forward.hpp"

namespace kzero::kernels {

/// The scores of 16 or 32 own rows with 16 others, and the gradients of the probabilities.
template <class Fragments, int down>
struct WarpScores {
  static constexpr int others = 16;  // at once
  using Sums = WarpSums<Fragments, down, 1>;
  using Factor = WarpFactor<Fragments, down, 1>;

  Sums probabilities, gradients;

  /// Turns a pair of scores and of dO V^T into one of P and of dS; `hidden` are those whose key
  /// comes after the query.
  KOKKOS_INLINE_FUNCTION static void resolve(float& p, float& gradient, float log2_scale,
                                             float log2_sum, float delta, bool hidden) {
    p = hidden ? 0.0F : Fragments::power_of_two(p * log2_scale - log2_sum);
    gradient = p * (gradient - delta);
  }
};

template <class Arithmetic, class T, int width>
struct WarpAttentionQueryGradient {
  static constexpr int down = width <= 64 ? 2 : 1;
  using Blocks = WarpBlocks<Arithmetic, T, width, down>;
  using Fragments = typename Blocks::Fragments;
  using Scores = WarpScores<Fragments, down>;
  static constexpr int keys = Scores::others, rows = Blocks::Sums::rows;

  BackwardArrays<T> x;

  template <class Thread>
  KOKKOS_INLINE_FUNCTION void run(const Thread& thread, int rank, T* scratch) const {
    const AttentionShape& shape = x.shape;
    const int blocks = static_cast<int>(blocks_of(shape, Blocks::own));
    const Index head = rank / blocks, kv_head = head / shape.group();
    const Index first = (blocks - 1 - rank % blocks) * Index{Blocks::own};
    const int lane = Blocks::lane(thread.thread), warp_row = Blocks::warp_row(thread.thread);
    const HeadRows<const T> k(x.in.k, shape, kv_head, shape.kv_heads);
    const HeadRows<const T> v(x.in.v, shape, kv_head, shape.kv_heads);
    T* gradient_tile = scratch + Blocks::own * Blocks::stride;
    Blocks::template copy<Blocks::own>(thread.thread, {x.in.q, shape, head, shape.heads}, first,
                                       scratch);
    Blocks::template copy<Blocks::own>(thread.thread, {x.dout, shape, head, shape.heads}, first,
                                       gradient_tile);
    Fragments::wait_for_copies();
    thread.team.team_barrier();
    const typename Blocks::Factor q(Blocks::rows_from(scratch, warp_row), lane);
    const typename Blocks::Factor dout(Blocks::rows_from(gradient_tile, warp_row), lane);
    thread.team.team_barrier();

    const Index row = first + warp_row;
    float log2_sum[rows], delta[rows];
    load_values(head, row, lane, log2_sum, delta);
    typename Blocks::Sums dq;
    const Index end = Kokkos::min(first + Blocks::own, shape.sequence);
    const int tiles = static_cast<int>((end + Blocks::other - 1) / Blocks::other);
    Blocks::for_tiles(
        thread, tiles, scratch,
        [&](int n, T* pair) {
          const Index key = n * Index{Blocks::other};
          Blocks::template copy<Blocks::other>(thread.thread, k, key, pair);
          Blocks::template copy<Blocks::other>(thread.thread, v, key, pair + Blocks::tile);
        },
        [&](int n, const T* pair) {
          const int ahead = static_cast<int>(row - n * Index{Blocks::other});
#pragma unroll 1
          for (int key = 0; key < Blocks::other && key < ahead + Blocks::warp_rows; key += keys) {
            Scores s;
            add_transposed(s.probabilities, q, Blocks::rows_from(pair, key), lane);
            add_transposed(s.gradients, dout, Blocks::rows_from(pair + Blocks::tile, key), lane);
#pragma unroll
            for (int i = 0; i < Scores::Sums::pairs; ++i) {
              const PairPlace at = Scores::Sums::place(lane, i);
              float *p = s.probabilities.pair(i), *g = s.gradients.pair(i);
              for (int e = 0; e < 2; ++e) {
                const bool hidden = key + at.column + e > ahead + at.row;
                Scores::resolve(p[e], g[e], x.scale * log2_of_e, log2_sum[at.slot], delta[at.slot],
                                hidden);
              }
            }
            add(dq, typename Scores::Factor(s.gradients), Blocks::rows_from(pair, key), lane);
          }
        });
    float factors[rows];
    for (float& factor : factors) factor = x.scale;
    Blocks::write(dq, {x.gradients.q, shape, head, shape.heads}, row, lane, factors);
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

template <class Arithmetic, class T, int width>
struct WarpAttentionKeyGradient {
  using Blocks = WarpBlocks<Arithmetic, T, width, 1>;
  using Fragments = typename Blocks::Fragments;
  using Scores = WarpScores<Fragments, 1>;
  static constexpr int queries = Scores::others, rows = Blocks::Sums::rows;

  BackwardArrays<T> x;

  /// The queries of a group's heads: tile n holds some of the group's head n / blocks.
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

    const int length = static_cast<int>(shape.sequence), group = static_cast<int>(shape.group());
    const int kv_heads = static_cast<int>(shape.kv_heads);
    const Queries from{kv_head / kv_heads, kv_head % kv_heads * group, first,
                       (length - first + Blocks::other - 1) / Blocks::other};
    auto* values = reinterpret_cast<float*>(scratch + Blocks::values);
    typename Blocks::Sums dk, dv;
    Blocks::for_tiles(
        thread, from.blocks * group, scratch,
        [&](int n, T* pair) {
          copy(thread.thread, from, n, pair, values + n % 2 * 2 * Blocks::other);
        },
        [&](int n, const T* pair) {
          const float* of_pair = values + n % 2 * 2 * Blocks::other;
          // Rows by which the first query of the tile is ahead of the warp's first key.
          const int ahead = n % from.blocks * Blocks::other - warp_row;
          const int skipped = ahead < 0 ? -ahead / queries * queries : 0;
#pragma unroll 1
          for (int query = skipped; query < Blocks::other; query += queries)
            add_queries(k, v, pair, of_pair, query, ahead + query, lane, dk, dv);
        });
    float factors[rows];
    for (float& factor : factors) factor = x.scale;
    Blocks::write(dk, {x.gradients.k, shape, kv_head, shape.kv_heads}, first + warp_row, lane,
                  factors);
    for (float& factor : factors) factor = 1.0F;
    Blocks::write(dv, {x.gradients.v, shape, kv_head, shape.kv_heads}, first + warp_row, lane,
                  factors);
  }

  /// Begins to copy tile n of q and of dout, and of their rows' log_sum and delta. What is not
  /// there is zero, and so is what it adds to dk and dv.
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

  /// Adds what 16 queries of a tile add to the warp's rows; the first query is `ahead` rows after
  /// the first key.
  KOKKOS_INLINE_FUNCTION void add_queries(const typename Blocks::Factor& k,
                                          const typename Blocks::Factor& v, const T* pair,
                                          const float* values, int query, int ahead, int lane,
                                          typename Blocks::Sums& dk,
                                          typename Blocks::Sums& dv) const {
    const Tile<const T> q = Blocks::rows_from(pair, query);
    const Tile<const T> dout = Blocks::rows_from(pair + Blocks::tile, query);
    Scores s;
    add_transposed(s.probabilities, k, q, lane);
    add_transposed(s.gradients, v, dout, lane);
#pragma unroll
    for (int i = 0; i < Scores::Sums::pairs; ++i) {
      const PairPlace at = Scores::Sums::place(lane, i);
      float *p = s.probabilities.pair(i), *g = s.gradients.pair(i);
      const float* of_rows = values + query + at.column;
      const auto log_sum = Pack<float, 2>::at(of_rows),
                 delta = Pack<float, 2>::at(of_rows + Blocks::other);
      for (int e = 0; e < 2; ++e) {
        Scores::resolve(p[e], g[e], x.scale * log2_of_e, log_sum.values[e] * log2_of_e,
                        delta.values[e], at.row > ahead + at.column + e);
      }
    }
    add(dv, typename Scores::Factor(s.probabilities), dout, lane);
    add(dk, typename Scores::Factor(s.gradients), q, lane);
  }
};

}  // namespace kzero::kernels
