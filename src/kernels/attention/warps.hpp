// Attention for devices with tensor cores, for heads of 16-bit elements up to 128 columns wide. A
// warp has 16 or 32 rows. Their scores, probabilities and sums stay in its registers, so that a
// row's maximum and sum are reduced over four lanes (Dao, arXiv 2307.08691). Teams share no data,
// as in device_tiles.hpp. Arithmetic::Fragments<T> is a class like that of warp_fragments.hpp.
#pragma once

#include <type_traits>

#include "kernels/attention/warp_backward.hpp"
#include "kernels/attention/warp_forward.hpp"

namespace kzero::kernels {

/// True if Arithmetic has tensor cores for T.
template <class Arithmetic, class T>
inline constexpr bool has_warps = sizeof(T) == 2 && requires {
  typename Arithmetic::template Fragments<T>;
};

// Two teams at once on a multiprocessor's 65536 registers: 255 per thread.
using WarpPolicy = BoundedPolicy<2 * team_threads, 1>;

/// Runs a kernel's body run(thread, rank, scratch) as a functor for Kokkos' teams.
template <class T, class Kernel>
struct OnTeams {
  Kernel kernel;

  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    Scratch scratch(team, Kernel::Blocks::bytes);
    kernel.run(TeamThread(team), team.league_rank(), scratch.take<T>(0));
  }
};

template <class T>
struct TeamLaunch {
  const Execution& exec;

  template <class Kernel>
  void operator()(const char* label, Index teams, const Kernel& kernel) const {
    WarpPolicy policy(exec, static_cast<int>(teams), team_warps, warp_lanes);
    policy.set_scratch_size(0, Kokkos::PerTeam(int{Kernel::Blocks::bytes}));
    Kokkos::parallel_for(label, policy, OnTeams<T, Kernel>{kernel});
  }
};

/// True if rows of heads are contiguous packs of 16 bytes. Pointers into arenas are aligned.
template <class T>
bool suits_warps(const AttentionShape& shape) {
  return shape.head_width <= 128 && shape.head_width % (16 / sizeof(T)) == 0;
}

/// Calls f(a std::integral_constant) with the number of columns of a warp's tile.
template <class F>
void with_warp_width(const AttentionShape& shape, const F& f) {
  if (shape.head_width <= 64) {
    f(std::integral_constant<int, 64>{});
  } else {
    f(std::integral_constant<int, 128>{});
  }
}

/// Computes out and log_sum. launch(label, teams, kernel) runs kernel.run for each team's rank.
template <class Arithmetic, class T, class Mask, class Launch>
void warp_attention_forward(const AttentionShape& s, float scale, const HeadOperands<const T>& in,
                            const Mask& mask, const HeadColumns<T>& out, Matrix<float> log_sum,
                            const Launch& launch) {
  with_warp_width(s, [&](auto width) {
    using Kernel = WarpAttentionForward<Arithmetic, T, width, Mask>;
    launch("kzero::kernels::attention_forward",
           s.batch * s.heads * blocks_of(s, Kernel::Blocks::own),
           Kernel{s, scale * log2_of_e, in, out, log_sum, mask});
  });
}

/// Computes the gradients, with one kernel for dq and one for dk and dv.
template <class Arithmetic, class T, class Mask, class Launch>
void warp_attention_backward(const BackwardArrays<T, Mask>& x, const Launch& launch) {
  const AttentionShape& s = x.shape;
  with_warp_width(s, [&](auto width) {
    using Queries = WarpAttentionQueryGradient<Arithmetic, T, width, Mask>;
    using Keys = WarpAttentionKeyGradient<Arithmetic, T, width, Mask>;
    launch("kzero::kernels::attention_query_gradient",
           s.batch * s.heads * blocks_of(s, Queries::Blocks::own), Queries{x});
    launch("kzero::kernels::attention_key_gradient",
           s.batch * s.kv_heads * blocks_of(s, Keys::Blocks::own), Keys{x});
  });
}

}  // namespace kzero::kernels
