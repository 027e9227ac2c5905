// The softmax of a long row by a device's team in one read: the running maximum and the sum
// relative to it (Milakov and Gimelshein, arXiv 1805.02867). A fixed tree joins a fixed number of
// lanes. The bits therefore do not depend on the number of threads or on the launch.
#pragma once

#include "kernels/exponential.hpp"
#include "kernels/row.hpp"

namespace kzero::kernels {

/// The maximum of some logits, and the sum of exp(logit - largest). The default is that of no
/// logits.
struct SoftmaxSum {
  float largest = -Kokkos::Experimental::infinity_v<float>;
  float total = 0;
};

/// Lanes per row, and threads in a device's team. A row of 50257 logits has 7 packs for each.
inline constexpr int softmax_lanes = 1024;

/// The lanes' sums, in a team's scratch memory.
using SoftmaxLanes = Kokkos::View<SoftmaxSum[softmax_lanes], Execution::scratch_memory_space,
                                  Kokkos::MemoryUnmanaged>;

/// The launch of one team per row, with scratch for its lanes. `teams` fit on a multiprocessor. One
/// keeps all rows that are read twice in a GPU's L2 cache in between: 132 rows of 50257 logits are
/// 27 MB.
template <int teams>
BoundedPolicy<softmax_lanes, teams> softmax_rows(const Execution& exec, Index rows) {
  BoundedPolicy<softmax_lanes, teams> policy(exec, static_cast<int>(rows), team_size(softmax_lanes),
                                             1);
  policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(SoftmaxLanes::shmem_size())));
  return policy;
}

namespace detail {

inline constexpr int softmax_pack = 8;  // two 16-byte accesses: one rescaling for eight logits

/// The shift for logits with maximum `largest`. Subtracting minus infinity would give NaN.
KOKKOS_INLINE_FUNCTION float softmax_shift(float largest) {
  return largest == -Kokkos::Experimental::infinity_v<float> ? 0.0F : largest;
}

KOKKOS_INLINE_FUNCTION SoftmaxSum joined(const SoftmaxSum& a, const SoftmaxSum& b) {
  const float largest = Kokkos::fmax(a.largest, b.largest), shift = softmax_shift(largest);
  return {largest,
          a.total * exponential(a.largest - shift) + b.total * exponential(b.largest - shift)};
}

template <int count>
KOKKOS_INLINE_FUNCTION SoftmaxSum with_logits(const SoftmaxSum& sum, const Pack<float, count>& x) {
  float largest = sum.largest;
  for (int e = 0; e < count; ++e) largest = Kokkos::fmax(largest, x.values[e]);
  const float shift = softmax_shift(largest);
  float total = sum.total * exponential(sum.largest - shift);
  for (int e = 0; e < count; ++e) total += exponential(x.values[e] - shift);
  return {largest, total};
}

/// Sums the lane's packs of row [n], and the incomplete last pack if it comes next.
KOKKOS_INLINE_FUNCTION SoftmaxSum lane_softmax(int lane, Index n, const float* row) {
  SoftmaxSum sum;
  const Index packs = n / softmax_pack;
  Index pack = lane;
  for (; pack < packs; pack += softmax_lanes)
    sum = with_logits(sum, read_pack<softmax_pack>(row + pack * softmax_pack));
  if (pack == packs) {
    for (Index j = packs * softmax_pack; j < n; ++j)
      sum = with_logits(sum, Pack<float, 1>{{row[j]}});
  }
  return sum;
}

}  // namespace detail

/// Returns the softmax sum of row [n] on every thread of the team. The team passes a barrier after
/// its reads. The sum is NaN if a logit is NaN, and not finite if a logit is infinite.
KOKKOS_INLINE_FUNCTION SoftmaxSum row_softmax(const Team& team, Index n, const float* row) {
  const SoftmaxLanes lanes(team.team_scratch(0));
  Kokkos::parallel_for(Kokkos::TeamVectorRange(team, int{softmax_lanes}),
                       [&](int lane) { lanes(lane) = detail::lane_softmax(lane, n, row); });
  team.team_barrier();
  for (int half = softmax_lanes / 2; half > 0; half /= 2) {
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, half), [&](int lane) {
      lanes(lane) = detail::joined(lanes(lane), lanes(lane + half));
    });
    team.team_barrier();
  }
  return lanes(0);
}

}  // namespace kzero::kernels
