// Matrix products of the rows that a warp owns. Their left factor and sum stay in its registers as
// fragments of 16 x 16 (warp_fragments.hpp). The right factor is a tile in scratch. A sum can
// become the left factor of the next product without leaving the registers.
#pragma once

#include "kernels/device/tile_product.hpp"
#include "kernels/device/warp_fragments.hpp"

namespace kzero::kernels {

/// A sum of products [16 down,16 across], initially zero. All lanes of a warp call collectively.
template <class Fragments, int down, int across>
struct WarpSums {
  static constexpr int rows = down * Fragments::rows;  // per lane
  static constexpr int pairs = down * across * Fragments::pairs;

  typename Fragments::Sum fragments[down][across];

  KOKKOS_INLINE_FUNCTION WarpSums() {
#pragma unroll
    for (int n = 0; n < down * across; ++n) Fragments::clear(fragments[n / across][n % across]);
  }

  KOKKOS_INLINE_FUNCTION static PairPlace place(int lane, int number) {
    const int fragment = number / Fragments::pairs, i = fragment / across, j = fragment % across;
    const PairPlace at = Fragments::place(lane, number % Fragments::pairs);
    return {i * Fragments::rows + at.slot, 16 * i + at.row, 16 * j + at.column};
  }
  KOKKOS_INLINE_FUNCTION float* pair(int number) {
    const int fragment = number / Fragments::pairs;
    return Fragments::pair(fragments[fragment / across][fragment % across],
                           number % Fragments::pairs);
  }

  /// Calls f(slot, row) for each row in which the lane holds elements.
  template <class F>
  KOKKOS_INLINE_FUNCTION static void for_rows(int lane, const F& f) {
#pragma unroll
    for (int slot = 0; slot < rows; ++slot)
      f(slot, slot / Fragments::rows * 16 + Fragments::row(lane, slot % Fragments::rows));
  }

  /// Calls f(place, x[2]) for each of the lane's pairs of neighbours in a row.
  template <class F>
  KOKKOS_INLINE_FUNCTION void for_pairs(int lane, const F& f) {
#pragma unroll
    for (int n = 0; n < pairs; ++n) f(place(lane, n), pair(n));
  }

  KOKKOS_INLINE_FUNCTION void scale_rows(int lane, const float (&factors)[rows]) {
    for_pairs(lane, [&](const PairPlace& at, float* x) {
      x[0] *= factors[at.slot];
      x[1] *= factors[at.slot];
    });
  }
};

/// A left factor [16 down,16 deep].
template <class Fragments, int down, int deep>
struct WarpFactor {
  typename Fragments::Left fragments[down][deep];

  /// Loads a tile of that size.
  template <class T>
  KOKKOS_INLINE_FUNCTION WarpFactor(const Tile<const T>& from, int lane) {
#pragma unroll
    for (int i = 0; i < down; ++i) {
#pragma unroll
      for (int k = 0; k < deep; ++k)
        Fragments::load(fragments[i][k], &from(16 * i, 16 * k), from.stride, lane);
    }
  }

  KOKKOS_INLINE_FUNCTION explicit WarpFactor(const WarpSums<Fragments, down, deep>& sums) {
#pragma unroll
    for (int n = 0; n < down * deep; ++n)
      Fragments::round(fragments[n / deep][n % deep], sums.fragments[n / deep][n % deep]);
  }
};

namespace detail {

/// Adds left * right. load(fragment, k, column) loads a fragment of the right factor.
template <class Fragments, int down, int deep, int across, class Load>
KOKKOS_INLINE_FUNCTION void add_fragments(WarpSums<Fragments, down, across>& sums,
                                          const WarpFactor<Fragments, down, deep>& left,
                                          const Load& load) {
#pragma unroll
  for (int k = 0; k < deep; ++k) {
#pragma unroll
    for (int j = 0; j < across; ++j) {
      typename Fragments::Right right;
      load(right, 16 * k, 16 * j);
#pragma unroll
      for (int i = 0; i < down; ++i)
        Fragments::multiply_add(sums.fragments[i][j], left.fragments[i][k], right);
    }
  }
}

}  // namespace detail

/// Adds A B^T; B is a tile [16 across,16 deep].
template <class Fragments, class T, int down, int deep, int across>
KOKKOS_INLINE_FUNCTION void add_transposed(WarpSums<Fragments, down, across>& sums,
                                           const WarpFactor<Fragments, down, deep>& a,
                                           const Tile<const T>& b, int lane) {
  detail::add_fragments(sums, a, [&](typename Fragments::Right& right, int k, int column) {
    Fragments::load_columns(right, &b(column, k), b.stride, lane);
  });
}

/// Adds A B; B is a tile [16 deep,16 across].
template <class Fragments, class T, int down, int deep, int across>
KOKKOS_INLINE_FUNCTION void add(WarpSums<Fragments, down, across>& sums,
                                const WarpFactor<Fragments, down, deep>& a, const Tile<const T>& b,
                                int lane) {
  detail::add_fragments(sums, a, [&](typename Fragments::Right& right, int k, int column) {
    Fragments::load_rows(right, &b(k, column), b.stride, lane);
  });
}

}  // namespace kzero::kernels
