// Backward of attention_device_tiles.hpp: dq by one team per block of queries, which walks over the
// keys they see; dk and dv by one team per block of keys, which walks over the queries that see
// them. With P = exp(scale Q K^T - log_sum) and delta = rowsum(dO * O): dV = P^T dO, dS = P * (dO
// V^T - delta), dQ = scale dS K, dK = scale dS^T Q.
#pragma once

#include "kernels/attention_device_blocks.hpp"
#include "kernels/exponential.hpp"

namespace kzero::kernels {

/// The arguments of both kernels; delta [B*H,T].
template <class T>
struct BackwardArrays {
  AttentionShape shape;
  float scale;
  Matrix<const T> qkv, dout;
  Matrix<const float> log_sum, delta;
  Matrix<T> dqkv;

  /// Computes P and dS of one pair from their matrix products.
  KOKKOS_INLINE_FUNCTION Kokkos::pair<float, float> gradients(Index head, Index query, Index key,
                                                              float score, float dscore) const {
    if (key > query || query >= shape.sequence) return {0.0F, 0.0F};
    const float p = exponential(scale * score - log_sum(head, query));
    return {p, p * (dscore - delta(head, query))};
  }
};

inline constexpr Needs backward_needs{
    .own_tiles = 2, .other_tiles = 2, .sums = 2, .rounded = 2, .row_values = 0};

template <class Arithmetic, class T, int width>
struct AttentionQueryGradient {
  using Work = TileWork<Arithmetic, T, width, backward_needs>;
  static constexpr int own = Work::own, other = Work::other;

  BackwardArrays<T> x;

  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const AttentionShape& shape = x.shape;
    const BlockIndex at = block_index_of(team, shape, own, width);
    // The last block of queries sees most keys, so it comes first.
    const Index first = (blocks_of(shape, own) - 1 - at.block) * own;
    Scratch scratch(team, Work::bytes);
    float* between = scratch.take<float>(0);
    HeadTile<T, own, width> q({x.qkv, shape, at.head, 0}, scratch);
    HeadTile<T, own, width> dout({x.dout, shape, at.head, 0}, scratch);
    HeadTile<T, other, width> k({x.qkv, shape, at.head, 1}, scratch);
    HeadTile<T, other, width> v({x.qkv, shape, at.head, 2}, scratch);
    const Tile<float> scores = scratch.take_tile<float, own, other>();
    const Tile<float> dprobabilities = scratch.take_tile<float, own, other>();
    const Tile<T> dscores = scratch.take_tile<T, own, other>();
    const int thread = thread_of(team), parts = parts_of(shape, width);
    typename Work::Output dq(thread);
    for (Index key = 0; key < first + own && key < shape.sequence; key += other) {
      Work::multiply(team, thread, parts, q, first, k, key, scores);
      Work::multiply(team, thread, parts, dout, first, v, key, dprobabilities);
      k.hold(team, key, at.part);
      team.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, own * other), [&](int n) {
        const int i = n / other, j = n % other;
        dscores(i, j) = static_cast<T>(
            x.gradients(at.head, first + i, key + j, scores(i, j), dprobabilities(i, j)).second);
      });
      team.team_barrier();
      dq.add({dscores.data, dscores.stride}, k.tile(), other, k.depth());
    }
    Work::write(team, dq, between, {x.dqkv, shape, at.head, 0}, first, at.part,
                [&](int) { return x.scale; });
  }
};

template <class Arithmetic, class T, int width>
struct AttentionKeyGradient {
  using Work = TileWork<Arithmetic, T, width, backward_needs>;
  static constexpr int own = Work::own, other = Work::other;

  BackwardArrays<T> x;

  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const AttentionShape& shape = x.shape;
    const BlockIndex at = block_index_of(team, shape, own, width);
    const Index first = at.block * own;
    Scratch scratch(team, Work::bytes);
    float* between = scratch.take<float>(0);
    HeadTile<T, own, width> k({x.qkv, shape, at.head, 1}, scratch);
    HeadTile<T, own, width> v({x.qkv, shape, at.head, 2}, scratch);
    HeadTile<T, other, width> q({x.qkv, shape, at.head, 0}, scratch);
    HeadTile<T, other, width> dout({x.dout, shape, at.head, 0}, scratch);
    // Transposed: a row is a key.
    const Tile<float> scores = scratch.take_tile<float, own, other>();
    const Tile<float> dprobabilities = scratch.take_tile<float, own, other>();
    const Tile<T> probabilities = scratch.take_tile<T, own, other>();
    const Tile<T> dscores = scratch.take_tile<T, own, other>();
    const int thread = thread_of(team), parts = parts_of(shape, width);
    typename Work::Output dk(thread), dv(thread);
    for (Index query = first; query < shape.sequence; query += other) {
      Work::multiply(team, thread, parts, k, first, q, query, scores);
      Work::multiply(team, thread, parts, v, first, dout, query, dprobabilities);
      q.hold(team, query, at.part);
      dout.hold(team, query, at.part);
      team.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, own * other), [&](int n) {
        const int i = n / other, j = n % other;
        const auto pair =
            x.gradients(at.head, query + j, first + i, scores(i, j), dprobabilities(i, j));
        probabilities(i, j) = static_cast<T>(pair.first);
        dscores(i, j) = static_cast<T>(pair.second);
      });
      team.team_barrier();
      dv.add({probabilities.data, probabilities.stride}, dout.tile(), other, dout.depth());
      dk.add({dscores.data, dscores.stride}, q.tile(), other, q.depth());
    }
    Work::write(team, dk, between, {x.dqkv, shape, at.head, 1}, first, at.part,
                [&](int) { return x.scale; });
    Work::write(team, dv, between, {x.dqkv, shape, at.head, 2}, first, at.part,
                [](int) { return 1.0F; });
  }
};

}  // namespace kzero::kernels
