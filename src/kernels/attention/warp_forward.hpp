// Forward of warps.hpp. A warp has 16 or 32 queries and walks over the keys that they see.
#pragma once

#include "kernels/attention/warp_documents.hpp"

namespace kzero::kernels {

inline constexpr float log2_of_e = 1.44269504F, log_of_two = 0.693147181F;

/// Scores are in units of log 2: log2_scale is log2(e) / sqrt(d).
template <class Arithmetic, class T, int width, class Mask>
struct WarpAttentionForward {
  static constexpr int down = width <= 64 ? 2 : 1;
  using Blocks = WarpBlocks<Arithmetic, T, width, down>;
  using Fragments = typename Blocks::Fragments;
  static constexpr int keys = 32;  // at once
  static constexpr int rows = Blocks::Sums::rows;
  using Scores = WarpSums<Fragments, down, keys / 16>;

  AttentionShape shape;
  float log2_scale;
  HeadOperands<const T> in;
  HeadColumns<T> out;
  Matrix<float> log_sum;
  Mask mask;

  /// The running maximum of each of a lane's rows, and the lane's share of the sum.
  struct State {
    float largest[rows], total[rows];
  };

  template <class Thread>
  KOKKOS_INLINE_FUNCTION void run(const Thread& thread, int rank, T* scratch) const {
    const WarpQueries<Blocks, Mask> at(shape, mask, rank, thread.thread);
    Blocks::template copy<Blocks::own>(thread.thread, {in.q, shape, at.head, shape.heads}, at.first,
                                       scratch);
    Fragments::wait_for_copies();
    thread.team.team_barrier();
    const typename Blocks::Factor queries(Blocks::rows_from(scratch, at.warp_row), at.lane);
    thread.team.team_barrier();

    typename Blocks::Sums sum;
    State state;
    for (int slot = 0; slot < rows; ++slot) {
      state.largest[slot] = Mask::lowest_score;
      state.total[slot] = 0;
    }
    const WarpFirstKeys<Blocks, Mask> first_keys(at);
    const auto add_keys = [&](const Tile<const T>& k, const Tile<const T>& v, int ahead) {
      Scores scores;
      add_transposed(scores, queries, k, at.lane);
      if (ahead < keys - 1 || first_keys.may_hide(ahead)) hide(scores, at.lane, ahead, first_keys);
      online_softmax(scores, at.lane, state, sum);
      if constexpr (Mask::drops) drop(scores, at, ahead);
      add(sum, WarpFactor<Fragments, down, keys / 16>(scores), v, at.lane);
    };
    at.template for_keys<keys>(thread, shape, in, scratch, add_keys);
    write(sum, state, at.head, at.row, at.lane);
  }

  /// Hides the keys that come after a query or before its document. The first query is `ahead` rows
  /// after the first key.
  KOKKOS_INLINE_FUNCTION static void hide(Scores& scores, int lane, int ahead,
                                          const WarpFirstKeys<Blocks, Mask>& first_keys) {
    scores.for_pairs(lane, [&](const PairPlace& at, float* x) {
      for (int e = 0; e < 2; ++e) {
        if (at.column + e > ahead + at.row || first_keys.hides(at.slot, at.column + e, ahead))
          x[e] = -Kokkos::Experimental::infinity_v<float>;
      }
    });
  }

  /// Applies dropout to probabilities whose sums are complete.
  KOKKOS_INLINE_FUNCTION void drop(Scores& scores, const WarpQueries<Blocks, Mask>& at,
                                   int ahead) const {
    scores.for_pairs(at.lane, [&](const PairPlace& place, float* x) {
      for (int e = 0; e < 2; ++e) {
        x[e] = dropped(at.seen, at.head % shape.heads, at.row + place.row,
                       at.row - ahead + place.column + e, x[e]);
      }
    });
  }

  /// Turns scores into unnormalised probabilities. Without documents every row has seen a key,
  /// because key 0 is in the first tile.
  KOKKOS_INLINE_FUNCTION void online_softmax(Scores& scores, int lane, State& state,
                                             typename Blocks::Sums& sum) const {
    float now[rows], factors[rows];
    for (float& x : now) x = -Kokkos::Experimental::infinity_v<float>;
    scores.for_pairs(lane, [&](const PairPlace& at, const float* x) {
      now[at.slot] = Kokkos::fmax(now[at.slot], Kokkos::fmax(x[0], x[1]));
    });
#pragma unroll
    for (int slot = 0; slot < rows; ++slot) {
      now[slot] = Fragments::largest_in_row(now[slot]) * log2_scale;
      now[slot] = Kokkos::fmax(now[slot], state.largest[slot]);
      factors[slot] = Fragments::power_of_two(state.largest[slot] - now[slot]);
      state.largest[slot] = now[slot];
      state.total[slot] *= factors[slot];
    }
    scores.for_pairs(lane, [&](const PairPlace& at, float* x) {
      for (int e = 0; e < 2; ++e) {
        x[e] = Fragments::power_of_two(x[e] * log2_scale - now[at.slot]);
        state.total[at.slot] += x[e];
      }
    });
    sum.scale_rows(lane, factors);
  }

  KOKKOS_INLINE_FUNCTION void write(typename Blocks::Sums& sum, State& state, Index head, Index row,
                                    int lane) const {
    float factors[rows];
#pragma unroll
    for (int slot = 0; slot < rows; ++slot) {
      state.total[slot] = Fragments::sum_in_row(state.total[slot]);
      factors[slot] = 1.0F / state.total[slot];
    }
    Blocks::write(sum, {out, shape, head, shape.heads}, row, lane, factors);
    if (!Fragments::is_first_in_row(lane)) return;
    Blocks::Sums::for_rows(lane, [&](int slot, int i) {
      if (row + i < shape.sequence) {
        log_sum(head, row + i) = state.largest[slot] * log_of_two + Kokkos::log(state.total[slot]);
      }
    });
  }
};

}  // namespace kzero::kernels
