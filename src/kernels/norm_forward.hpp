// The forward kernels of LayerNorm and RMSNorm.
#pragma once

#include "kernels/device/row_tile.hpp"
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

/// The statistics of a row. RMSNorm has no mean.
struct RowStatistics {
  float mean, rstd;
};

/// What a norm computes of each element. V is float or a vector of floats.
struct NormElement {
  RowStatistics of;
  NormScale scale;

  template <class V>
  KOKKOS_INLINE_FUNCTION V layer(V x, V weight, V bias) const {
    return (x - of.mean) * of.rstd * weight + bias;
  }
  template <class V>
  KOKKOS_INLINE_FUNCTION V rms(V x, V weight) const {
    return x * of.rstd * scale.of(weight);
  }
};

/// The square whose mean is a row's variance.
KOKKOS_INLINE_FUNCTION float norm_square(float x, float mean) { return (x - mean) * (x - mean); }

KOKKOS_INLINE_FUNCTION float norm_rstd(float squares, Index width, float eps) {
  return 1.0F / Kokkos::sqrt(squares / static_cast<float>(width) + eps);
}

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

/// Writes row i of y.
template <NormKind kind, class Threads, class T>
KOKKOS_INLINE_FUNCTION RowStatistics forward_row(const Threads& threads, const ForwardRows<T>& rows,
                                                 Index i) {
  const Index width = rows.width;
  const T* row = rows.x + i * width;
  T* out = rows.y + i * width;
  const float m = row_mean<kind>(threads, row, width);
  const auto square = [=](float xj) { return norm_square(xj, m); };
  const float r = norm_rstd(sum_of(threads, width, square, row), width, rows.eps);
  const NormElement element{{m, r}, rows.scale};
  if constexpr (kind == NormKind::layer) {
    const auto normal = [=](auto xj, auto wj, auto bj) { return element.layer(xj, wj, bj); };
    map(threads, width, out, normal, row, rows.weight, rows.bias);
  } else if (rows.addend == nullptr) {
    const auto normal = [=](auto xj, auto wj) { return element.rms(xj, wj); };
    map(threads, width, out, normal, row, rows.weight);
  } else {
    const T* addend = rows.addend + i * width;
    const auto sum = [=](auto aj, auto xj, auto wj) { return aj + element.rms(xj, wj); };
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
    keep<kind>(rows, begin, forward_row<kind>(team, rows, begin));
  } else {
    const Index end = Kokkos::min(begin + Index{norm_rows}, rows.count);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, begin, end), [&](Index i) {
      const RowStatistics of = forward_row<kind>(Lanes{team}, rows, i);
      Kokkos::single(Kokkos::PerThread(team), [=]() { keep<kind>(rows, i, of); });
    });
  }
}

/// Rows of x in the registers of a team.
template <NormKind kind, class T>
class ForwardTile {
 public:
  KOKKOS_INLINE_FUNCTION ForwardTile(const Team& team, const ForwardRows<T>& rows)
      : team_(team),
        rows_(rows),
        lane_(team, rows.width),
        tile_{team.league_rank() * Index{count}, rows.count} {
    x_.read(lane_, tile_, rows.x, rows.width);
  }

  KOKKOS_INLINE_FUNCTION void run() {
    Values mean;
    if constexpr (kind == NormKind::layer) {
      mean = sums_of([](float x, int) { return x; });
#pragma unroll
      for (float& of_row : mean.of) of_row /= static_cast<float>(rows_.width);
    }
    const Values squares = sums_of([&](float x, int r) { return norm_square(x, mean.of[r]); });
    RowStatistics statistics[count];
#pragma unroll
    for (int r = 0; r < count; ++r)
      statistics[r] = {mean.of[r], norm_rstd(squares.of[r], rows_.width, rows_.eps)};
    if (lane_.is_first_lane()) {
      tile_.template for_each<count>([&](int r, Index i) { keep<kind>(rows_, i, statistics[r]); });
    }
    write(statistics);
  }

 private:
  static constexpr int count = tile_rows<T>;
  using Values = PerRow<float, count>;
  using Elements = Pack<T, tile_columns>;

  /// The sums of f(x, row) over each row.
  template <class F>
  KOKKOS_INLINE_FUNCTION Values sums_of(const F& f) {
    Values sums;
    lane_.for_each([&](int p, Index) {
#pragma unroll
      for (int r = 0; r < count; ++r) {
        const Elements x = x_.packs[p][r].elements();
        for (int e = 0; e < tile_columns; ++e) sums.of[r] += f(static_cast<float>(x.values[e]), r);
      }
    });
    x_.forget_elements();
    return sum_of_lanes(team_, lane_, sums);
  }

  KOKKOS_INLINE_FUNCTION void write(const RowStatistics (&statistics)[count]) const {
    const Index width = rows_.width;
    lane_.for_each([&](int p, Index j) {
      const Elements w = read_pack<tile_columns>(rows_.weight + j);
      Elements bias{};
      if constexpr (kind == NormKind::layer) bias = read_pack<tile_columns>(rows_.bias + j);
      tile_.template for_each<count>([&](int r, Index i) {
        const Elements x = x_.packs[p][r].elements();
        Elements addend{}, y;
        if (rows_.addend != nullptr) addend = Elements::at(rows_.addend + i * width + j);
        const NormElement element{statistics[r], rows_.scale};
        for (int e = 0; e < tile_columns; ++e)
          y.values[e] = of(element, x.values[e], w.values[e], bias.values[e], addend.values[e]);
        Elements::at(rows_.y + i * width + j) = y;
      });
    });
  }

  KOKKOS_INLINE_FUNCTION T of(const NormElement& element, T x, T w, [[maybe_unused]] T bias,
                              [[maybe_unused]] T addend) const {
    const float xj = static_cast<float>(x), wj = static_cast<float>(w);
    if constexpr (kind == NormKind::layer) {
      return static_cast<T>(element.layer(xj, wj, static_cast<float>(bias)));
    } else {
      const float y = element.rms(xj, wj);
      return static_cast<T>(rows_.addend == nullptr ? y : static_cast<float>(addend) + y);
    }
  }

  const Team& team_;
  const ForwardRows<T>& rows_;
  LanePacks lane_;
  TileRows tile_;
  RowTile<T> x_;
};

template <NormKind kind, class T>
void norm_forward_by_tiles(const Execution& exec, const char* label, const ForwardRows<T>& rows) {
  Kokkos::parallel_for(
      label, tile_policy(exec, ceil_div(rows.count, Index{tile_rows<T>}), rows.width),
      KOKKOS_LAMBDA(const Team& team) { ForwardTile<kind, T>(team, rows).run(); });
}

template <NormKind kind, class T>
void norm_forward_by_rows(const Execution& exec, const char* label, const ForwardRows<T>& rows) {
  const auto teams = static_cast<int>(ceil_div(rows.count, norm_rows));
  Kokkos::parallel_for(
      label, Policy(exec, teams, team_size(norm_rows), vector_length(32)),
      KOKKOS_LAMBDA(const Team& team) { team_forward<kind>(team, rows); });
}

template <NormKind kind, class T>
void norm_forward(const Execution& exec, const char* label, const ForwardRows<T>& rows) {
  if constexpr (!tensor::on_host) {
    if (suits_tile(rows.width, rows.x, rows.y, rows.addend)) {
      norm_forward_by_tiles<kind>(exec, label, rows);
      return;
    }
  }
  norm_forward_by_rows<kind>(exec, label, rows);
}

}  // namespace kzero::kernels
