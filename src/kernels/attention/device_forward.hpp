// Forward of device_tiles.hpp. A team has a block of queries and walks over the keys that they see.
#pragma once

#include "kernels/attention/device_blocks.hpp"
#include "kernels/attention/mask.hpp"
#include "kernels/exponential.hpp"

namespace kzero::kernels {

template <class Arithmetic, class T, int width, class Mask>
struct AttentionForward {
  static constexpr Needs needs{
      .own_tiles = 1, .other_tiles = 2, .sums = 1, .rounded = 1, .row_values = 2};
  using Work = TileWork<Arithmetic, T, width, needs>;
  static constexpr int own = Work::own, other = Work::other;

  AttentionShape shape;
  float scale;
  HeadOperands<const T> in;
  HeadColumns<T> out;
  Matrix<float> log_sum;
  Mask mask;

  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const BlockIndex at = block_index_of(team, shape, own, width);
    // The last block of queries sees the most keys, so it comes first.
    const Index first = (blocks_of(shape, own) - 1 - at.block) * own;
    Scratch scratch(team, Work::bytes);
    float* largest = scratch.take<float>(own);
    float* total = scratch.take<float>(own);
    float* between = scratch.take<float>(0);
    const Index kv_head = at.head / shape.group();
    HeadTile<T, own, width> q({in.q, shape, at.head, shape.heads}, scratch);
    HeadTile<T, other, width> k({in.k, shape, kv_head, shape.kv_heads}, scratch);
    HeadTile<T, other, width> v({in.v, shape, kv_head, shape.kv_heads}, scratch);
    const Tile<float> scores = scratch.take_tile<float, own, other>();
    const Tile<T> probabilities = scratch.take_tile<T, own, other>();
    const Mask seen = mask.of_sequence(at.head / shape.heads);
    const int thread = thread_of(team), parts = parts_of(shape, width);
    typename Work::Output sum(thread);
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, int{own}), [&](int i) {
      largest[i] = Mask::lowest_score;
      total[i] = 0;
    });
    for (Index key = seen.first_key(first) / other * other;
         key < first + own && key < shape.sequence; key += other) {
      v.hold(team, key, at.part);
      Work::multiply(team, thread, parts, q, first, k, key, scores);
      team.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, own), [&](int i) {
        online_softmax(team, {seen.first_key(first + i) - key, first + i - key}, &scores(i, 0),
                       largest[i], total[i], &probabilities(i, 0), [&](int j, float p) {
                         return dropped(seen, at.head % shape.heads, first + i, key + j, p);
                       });
      });
      team.team_barrier();
      sum.scale_rows({scores.data, scores.stride});
      sum.add({probabilities.data, probabilities.stride}, v.tile(), other, v.depth());
    }
    Work::write(team, sum, between, {out, shape, at.head, shape.heads}, first, at.part,
                [&](int i) { return 1.0F / total[i]; });
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, int{own}), [&](int i) {
      if (at.part == 0 && first + i < shape.sequence) {
        log_sum(at.head, first + i) = largest[i] + Kokkos::log(total[i]);
      }
    });
  }

  /// The keys that a query sees, as positions in a tile.
  struct Seen {
    Index first, last;

    KOKKOS_INLINE_FUNCTION bool has(Index j) const {
      if constexpr (Mask::has_documents) {
        return first <= j && j <= last;
      } else {
        return j <= last;
      }
    }
  };

  /// Turns one query's scores into unnormalised probabilities. The first score is replaced by the
  /// factor with which a larger maximum shrinks the earlier sum. drop(j, p) applies dropout, which
  /// the sum does not have. Called by one warp.
  template <class Drop>
  KOKKOS_INLINE_FUNCTION void online_softmax(const Team& team, const Seen& seen, float* scores,
                                             float& largest, float& total, T* probabilities,
                                             const Drop& drop) const {
    float now = 0, sum = 0;
    const float before = largest;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, other),
        [&](int j, float& max) {
          if (seen.has(j)) max = Kokkos::fmax(max, scale * scores[j]);
        },
        Kokkos::Max<float>(now));
    now = Kokkos::fmax(before, now);
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, other),
        [&](int j, float& partial) {
          const float p = seen.has(j) ? exponential(scale * scores[j] - now) : 0.0F;
          probabilities[j] = static_cast<T>(drop(j, p));
          partial += p;
        },
        sum);
    const float factor = exponential(before - now);
    Kokkos::single(Kokkos::PerThread(team), [&]() {
      scores[0] = factor;
      largest = now;
      total = total * factor + sum;
    });
  }
};

}  // namespace kzero::kernels
