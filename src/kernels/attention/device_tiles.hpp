// Attention for devices in tiles, without T x T scores (Dao et al., arXiv 2205.14135). A team has a
// block of queries, or of keys, and walks over the blocks that it sees or that see it. Teams share
// no data, so there are no atomics and every sum has one order. Arithmetic::GemmProblem<T, rows,
// columns> is a class like that of tile_product.hpp. With tensor cores, warps.hpp computes the
// heads that suit it.
#pragma once

#include <type_traits>

#include "kernels/attention/backends.hpp"
#include "kernels/attention/device_backward.hpp"
#include "kernels/attention/device_forward.hpp"
#include "kernels/attention/warps.hpp"

namespace kzero::kernels {

struct PlainArithmetic {
  template <class T, int rows, int columns>
  using GemmProblem = PlainProduct<T, rows, columns, team_threads>;
};

namespace detail {

template <class TeamPolicy, class Kernel>
void launch_blocks(const char* label, const Execution& exec, const AttentionShape& s, Index heads,
                   int width, const Kernel& kernel) {
  const Index teams = s.batch * heads * blocks_of(s, Kernel::own) * parts_of(s, width);
  TeamPolicy policy(exec, static_cast<int>(teams), team_warps, warp_lanes);
  policy.set_scratch_size(0, Kokkos::PerTeam(int{Kernel::Work::bytes}));
  Kokkos::parallel_for(label, policy, kernel);
}

/// Calls f(a std::integral_constant) with the tile width for these heads. Where warps compute most
/// heads, one width is enough for the rest.
template <class Arithmetic, class T, class F>
void with_tile_width(const AttentionShape& s, const F& f) {
  if constexpr (has_warps<Arithmetic, T>) {
    f(std::integral_constant<int, 128>{});
  } else {
    with_warp_width(s, f);
  }
}

/// With tensor cores a thread of the key gradient needs more than 128 registers.
template <class Arithmetic, class T>
using TilePolicy = std::conditional_t<has_warps<Arithmetic, T>, WarpPolicy, BlockPolicy>;

/// Computes each head's delta [B*H,T] = rowsum(dout * out).
template <class T>
void sum_products(const Execution& exec, const AttentionShape& s, Matrix<const T> out,
                  Matrix<const T> dout, Matrix<float> delta) {
  const Index d = s.head_width, heads = s.heads, length = s.sequence;
  Kokkos::parallel_for(
      "kzero::kernels::attention_delta",
      BlockPolicy(exec, static_cast<int>(s.batch * length), team_warps, warp_lanes),
      KOKKOS_LAMBDA(const Team& team) {
        const Index row = team.league_rank();
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads), [&](Index head) {
          const T* o = &out(row, head * d);
          const T* g = &dout(row, head * d);
          float total = 0;
          Kokkos::parallel_reduce(
              Kokkos::ThreadVectorRange(team, d),
              [&](Index j, float& partial) {
                partial += static_cast<float>(o[j]) * static_cast<float>(g[j]);
              },
              total);
          Kokkos::single(Kokkos::PerThread(team),
                         [&]() { delta(row / length * heads + head, row % length) = total; });
        });
      });
}

}  // namespace detail

template <class Arithmetic, class T>
void device::Attention<Arithmetic, T>::forward(const Execution& exec,
                                               const HeadOperands<const T>& in,
                                               const AttentionRows& rows, Matrix<T> out,
                                               Matrix<float> log_sum) const {
  const AttentionShape& s = shape_;
  const HeadColumns<T> columns{out.data(), s.width()};
  with_mask(rows, s.sequence, [&](const auto& mask) {
    using Mask = std::decay_t<decltype(mask)>;
    if constexpr (has_warps<Arithmetic, T>) {
      if (suits_warps<T>(s)) {
        warp_attention_forward<Arithmetic>(s, scale_, in, mask, columns, log_sum,
                                           TeamLaunch<T>{exec});
        return;
      }
    }
    using TeamPolicy = detail::TilePolicy<Arithmetic, T>;
    detail::with_tile_width<Arithmetic, T>(s, [&](auto width) {
      const AttentionForward<Arithmetic, T, width, Mask> kernel{s,       scale_,  in,
                                                                columns, log_sum, mask};
      detail::launch_blocks<TeamPolicy>("kzero::kernels::attention_forward", exec, s, s.heads,
                                        width, kernel);
    });
  });
}

template <class Arithmetic, class T>
void device::Attention<Arithmetic, T>::backward(const Execution& exec,
                                                const HeadOperands<const T>& in,
                                                const AttentionRows& rows, Matrix<const T> out,
                                                Matrix<const float> log_sum, Matrix<const T> dout,
                                                const HeadOperands<T>& gradients) const {
  const AttentionShape& s = shape_;
  const Matrix<float> delta(scratch_.data(), s.batch * s.heads, s.sequence);
  detail::sum_products<T>(exec, s, out, dout, delta);
  with_mask(rows, s.sequence, [&](const auto& mask) {
    using Mask = std::decay_t<decltype(mask)>;
    const BackwardArrays<T, Mask> arrays{
        s,         scale_, in, {dout.data(), s.width()}, log_sum, Matrix<const float>(delta),
        gradients, mask};
    if constexpr (has_warps<Arithmetic, T>) {
      if (suits_warps<T>(s)) {
        warp_attention_backward<Arithmetic>(arrays, TeamLaunch<T>{exec});
        return;
      }
    }
    using TeamPolicy = detail::TilePolicy<Arithmetic, T>;
    detail::with_tile_width<Arithmetic, T>(s, [&](auto width) {
      detail::launch_blocks<TeamPolicy>("kzero::kernels::attention_query_gradient", exec, s,
                                        s.heads, width,
                                        AttentionQueryGradient<Arithmetic, T, width, Mask>{arrays});
      detail::launch_blocks<TeamPolicy>("kzero::kernels::attention_key_gradient", exec, s,
                                        s.kv_heads, width,
                                        AttentionKeyGradient<Arithmetic, T, width, Mask>{arrays});
    });
  });
}

}  // namespace kzero::kernels
