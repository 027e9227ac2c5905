// The forward kernels of LayerNorm and RMSNorm.
#pragma once

#include "kernels/norm.hpp"

namespace kzero::kernels {

/// RMSNorm has neither mean nor bias.
enum class NormKind { layer, rms };

/// A batch of rows, and the parameters and statistics of its norm. bias and mean are null for
/// RMSNorm, which alone has a scale and an addend. The addend may be null.
template <class T>
struct ForwardRows {
  const T *x, *weight, *bias;
  float eps;
  T* y;
  float *mean, *rstd;
  Index count, width;
  NormScale scale = {};
  const T* addend = nullptr;
};

/// Threads: a team, or the lanes of one thread.
template <NormKind kind, class Threads, class T>
KOKKOS_INLINE_FUNCTION float row_mean(const Threads& threads, const T* row, Index width) {
  if constexpr (kind == NormKind::layer) {
    const auto value = [](float xj) { return xj; };
    return sum_of(threads, width, value, row) / static_cast<float>(width);
  } else {
    return 0;
  }
}

/// The statistics of a row. RMSNorm has no mean.
struct RowStatistics {
  float mean, rstd;
};

/// Writes row i of y.
template <NormKind kind, class Threads, class T>
KOKKOS_INLINE_FUNCTION RowStatistics forward_row(const Threads& threads, const ForwardRows<T>& rows,
                                                 Index i) {
  const Index width = rows.width;
  const T* row = rows.x + i * width;
  T* out = rows.y + i * width;
  const float m = row_mean<kind>(threads, row, width);
  const auto square = [=](float xj) { return (xj - m) * (xj - m); };
  const float variance = sum_of(threads, width, square, row) / static_cast<float>(width);
  const float r = 1.0F / Kokkos::sqrt(variance + rows.eps);
  if constexpr (kind == NormKind::layer) {
    const auto normal = [=](auto xj, auto wj, auto bj) { return (xj - m) * r * wj + bj; };
    map(threads, width, out, normal, row, rows.weight, rows.bias);
  } else if (rows.addend == nullptr) {
    const NormScale scale = rows.scale;
    const auto normal = [=](auto xj, auto wj) { return xj * r * scale.of(wj); };
    map(threads, width, out, normal, row, rows.weight);
  } else {
    const NormScale scale = rows.scale;
    const T* addend = rows.addend + i * width;
    const auto sum = [=](auto aj, auto xj, auto wj) { return aj + xj * r * scale.of(wj); };
    map(threads, width, out, sum, addend, row, rows.weight);
  }
  return {m, r};
}

template <NormKind kind, class T>
KOKKOS_INLINE_FUNCTION void keep(const ForwardRows<T>& rows, Index i, const RowStatistics& of) {
  if constexpr (kind == NormKind::layer) rows.mean[i] = of.mean;
  rows.rstd[i] = of.rstd;
}

/// Rows of a team. On devices a warp processes a row, so that its sums need no barrier.
inline constexpr Index norm_rows = tensor::on_host ? 1 : 8;

template <NormKind kind, class T>
KOKKOS_INLINE_FUNCTION void team_forward(const Team& team, const ForwardRows<T>& rows) {
  const Index begin = team.league_rank() * norm_rows;
  if constexpr (tensor::on_host) {
    const RowStatistics of = forward_row<kind>(team, rows, begin);
    Kokkos::single(Kokkos::PerTeam(team), [=]() { keep<kind>(rows, begin, of); });
  } else {
    const Index end = Kokkos::min(begin + Index{norm_rows}, rows.count);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, begin, end), [&](Index i) {
      const RowStatistics of = forward_row<kind>(Lanes{team}, rows, i);
      Kokkos::single(Kokkos::PerThread(team), [=]() { keep<kind>(rows, i, of); });
    });
  }
}

template <NormKind kind, class T>
void norm_forward(const Execution& exec, const char* label, const ForwardRows<T>& rows) {
  const auto teams = static_cast<int>(ceil_div(rows.count, norm_rows));
  Kokkos::parallel_for(
      label, Policy(exec, teams, team_size(norm_rows), vector_length(32)),
      KOKKOS_LAMBDA(const Team& team) { team_forward<kind>(team, rows); });
}

}  // namespace kzero::kernels
