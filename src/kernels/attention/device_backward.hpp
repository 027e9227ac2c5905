// Backward of device_tiles.hpp. One team per block of queries computes dq and walks over the keys
// that they see. One team per block of keys computes dk and dv and walks over the queries that see
// them. With P = exp(scale Q K^T - log_sum) and delta = rowsum(dO * O): dV = P^T dO, dS = P * (dO
// V^T - delta), dQ = scale dS K, dK = scale dS^T Q. Dropout applies to the P of dV and to dO V^T.
#pragma once

#include "kernels/attention/device_blocks.hpp"
#include "kernels/attention/mask.hpp"
#include "kernels/exponential.hpp"

namespace kzero::kernels {

/// The arguments of both kernels. delta [B*H,T].
template <class T, class Mask>
struct BackwardArrays {
  AttentionShape shape;
  float scale;
  HeadOperands<const T> in;
  HeadColumns<const T> dout;
  Matrix<const float> log_sum, delta;
  HeadOperands<T> gradients;
  Mask mask;

  /// Computes P, after dropout, and dS of one query and key from their matrix products.
  KOKKOS_INLINE_FUNCTION Kokkos::pair<float, float> of_pair(const Mask& seen, Index head,
                                                            Index query, Index key, float score,
                                                            float dscore) const {
    if (key > query || query >= shape.sequence) return {0.0F, 0.0F};
    if (Mask::has_documents && key < seen.first_key(query)) return {0.0F, 0.0F};
    const float p = exponential(scale * score - log_sum(head, query));
    const auto drop = [&](float x) { return dropped(seen, head % shape.heads, query, key, x); };
    return {drop(p), p * (drop(dscore) - delta(head, query))};
  }
};

inline constexpr Needs backward_needs{
    .own_tiles = 2, .other_tiles = 2, .sums = 2, .rounded = 2, .row_values = 0};

template <class Arithmetic, class T, int width, class Mask>
struct AttentionQueryGradient {
  using Work = TileWork<Arithmetic, T, width, backward_needs>;
  static constexpr int own = Work::own, other = Work::other;

  BackwardArrays<T, Mask> x;

  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const AttentionShape& shape = x.shape;
    const BlockIndex at = block_index_of(team, shape, own, width);
    // The last block of queries sees the most keys, so it comes first.
    const Index first = (blocks_of(shape, own) - 1 - at.block) * own;
    Scratch scratch(team, Work::bytes);
    float* between = scratch.take<float>(0);
    const Index kv_head = at.head / shape.group();
    HeadTile<T, own, width> q({x.in.q, shape, at.head, shape.heads}, scratch);
    HeadTile<T, own, width> dout({x.dout, shape, at.head, shape.heads}, scratch);
    HeadTile<T, other, width> k({x.in.k, shape, kv_head, shape.kv_heads}, scratch);
    HeadTile<T, other, width> v({x.in.v, shape, kv_head, shape.kv_heads}, scratch);
    const Tile<float> scores = scratch.take_tile<float, own, other>();
    const Tile<float> dprobabilities = scratch.take_tile<float, own, other>();
    const Tile<T> dscores = scratch.take_tile<T, own, other>();
    const Mask seen = x.mask.of_sequence(at.head / shape.heads);
    const int thread = thread_of(team), parts = parts_of(shape, width);
    typename Work::Output dq(thread);
    for (Index key = seen.first_key(first) / other * other;
         key < first + own && key < shape.sequence; key += other) {
      Work::multiply(team, thread, parts, q, first, k, key, scores);
      Work::multiply(team, thread, parts, dout, first, v, key, dprobabilities);
      k.hold(team, key, at.part);
      team.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, own * other), [&](int n) {
        const int i = n / other, j = n % other;
        dscores(i, j) = static_cast<T>(
            x.of_pair(seen, at.head, first + i, key + j, scores(i, j), dprobabilities(i, j))
                .second);
      });
      team.team_barrier();
      dq.add({dscores.data, dscores.stride}, k.tile(), other, k.depth());
    }
    Work::write(team, dq, between, {x.gradients.q, shape, at.head, shape.heads}, first, at.part,
                [&](int) { return x.scale; });
  }
};

template <class Arithmetic, class T, int width, class Mask>
struct AttentionKeyGradient {
  using Work = TileWork<Arithmetic, T, width, backward_needs>;
  static constexpr int own = Work::own, other = Work::other;

  BackwardArrays<T, Mask> x;

  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const AttentionShape& shape = x.shape;
    const BlockIndex at = block_index_of(team, shape, own, width);
    const Index first = at.block * own;
    Scratch scratch(team, Work::bytes);
    float* between = scratch.take<float>(0);
    HeadTile<T, own, width> k({x.in.k, shape, at.head, shape.kv_heads}, scratch);
    HeadTile<T, own, width> v({x.in.v, shape, at.head, shape.kv_heads}, scratch);
    const Index first_head = at.head * shape.group();
    HeadTile<T, other, width> q({x.in.q, shape, first_head, shape.heads}, scratch);
    HeadTile<T, other, width> dout({x.dout, shape, first_head, shape.heads}, scratch);
    // Transposed: a row is a key.
    const Tile<float> scores = scratch.take_tile<float, own, other>();
    const Tile<float> dprobabilities = scratch.take_tile<float, own, other>();
    const Tile<T> probabilities = scratch.take_tile<T, own, other>();
    const Tile<T> dscores = scratch.take_tile<T, own, other>();
    const Mask seen = x.mask.of_sequence(at.head / shape.kv_heads);
    const Index end = seen.end_of_queries(first + own - 1);
    const int thread = thread_of(team), parts = parts_of(shape, width);
    typename Work::Output dk(thread), dv(thread);
    for (Index head = first_head; head < first_head + shape.group(); ++head) {
      q.read({x.in.q, shape, head, shape.heads});
      dout.read({x.dout, shape, head, shape.heads});
      for (Index query = first; query < end; query += other) {
        Work::multiply(team, thread, parts, k, first, q, query, scores);
        Work::multiply(team, thread, parts, v, first, dout, query, dprobabilities);
        q.hold(team, query, at.part);
        dout.hold(team, query, at.part);
        team.team_barrier();
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team, own * other), [&](int n) {
          const int i = n / other, j = n % other;
          const auto pair =
              x.of_pair(seen, head, query + j, first + i, scores(i, j), dprobabilities(i, j));
          probabilities(i, j) = static_cast<T>(pair.first);
          dscores(i, j) = static_cast<T>(pair.second);
        });
        team.team_barrier();
        dv.add({probabilities.data, probabilities.stride}, dout.tile(), other, dout.depth());
        dk.add({dscores.data, dscores.stride}, q.tile(), other, q.depth());
      }
    }
    Work::write(team, dk, between, {x.gradients.k, shape, at.head, shape.kv_heads}, first, at.part,
                [&](int) { return x.scale; });
    Work::write(team, dv, between, {x.gradients.v, shape, at.head, shape.kv_heads}, first, at.part,
                [](int) { return 1.0F; });
  }
};

}  // namespace kzero::kernels
