// tile_product.hpp on tensor cores, for 16-bit tiles: fragments of 16 x 16 with fp32 sums,
// distributed over a team's warps. Tiles begin at multiples of 32 bytes. Their strides are
// multiples of 8 elements in 16 bits and of 4 in fp32.
#pragma once

#include "kernels/device/tile_product.hpp"

namespace kzero::kernels {

/// A sum of matrix products [rows,columns], multiples of 16, over `warps` warps of `lanes` threads.
/// `depth` is also a multiple of 16. All threads of a warp call collectively. Fragments is a class
/// like that of warp_fragments.hpp.
template <class Fragments, class T, int rows, int columns, int warps, int lanes>
class TensorCoreProduct {
 public:
  KOKKOS_INLINE_FUNCTION explicit TensorCoreProduct(int thread)
      : first_(thread / lanes * held), lane_(thread % lanes) {
    for (auto& sum : sum_) Fragments::clear(sum);
  }

#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION void add_transposed(const Tile<const T>& a, const Tile<const T>& b,
                                             int depth) {
    for_steps(a, depth, columns, [&](typename Fragments::Right& right, int k, int column) {
      Fragments::load_columns(right, &b(column, k), b.stride, lane_);
    });
  }

#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION void add(const Tile<const T>& a, const Tile<const T>& b, int depth,
                                  int used) {
    for_steps(a, depth, used, [&](typename Fragments::Right& right, int k, int column) {
      Fragments::load_rows(right, &b(k, column), b.stride, lane_);
    });
  }

  KOKKOS_INLINE_FUNCTION void scale_rows(const Tile<const float>& factors) {
    if (first_ >= total) return;
#pragma unroll
    for (int f = 0; f < held; ++f)
      Fragments::scale_rows(sum_[f], {&factors(row(f), 0), factors.stride}, lane_);
  }

  KOKKOS_INLINE_FUNCTION void store(const Tile<float>& to) {
    if (first_ >= total) return;
#pragma unroll
    for (int f = 0; f < held; ++f)
      Fragments::store(sum_[f], {&to(row(f), column(f)), to.stride}, lane_);
  }

 private:
  // A warp's fragments are adjacent in a row of fragments, or fill complete rows.
  static constexpr int across = columns / 16, total = rows / 16 * across;
  static constexpr int held = total < warps ? 1 : total / warps;
  static constexpr int in_row = held < across ? held : across;
  static_assert(total < warps ||
                (held * warps == total && across % in_row == 0 && held % in_row == 0));

  KOKKOS_INLINE_FUNCTION int row(int f) const { return (first_ + f) / across * 16; }
  KOKKOS_INLINE_FUNCTION int column(int f) const { return (first_ + f) % across * 16; }

  /// Multiplies A by B, 16 of the depth at a time. load(right, k, column) loads a fragment of B.
#pragma nv_exec_check_disable
  template <class Load>
  KOKKOS_INLINE_FUNCTION void for_steps(const Tile<const T>& a, int depth, int used,
                                        const Load& load) {
    if (first_ >= total) return;
    for (int k = 0; k < depth; k += 16) {
      typename Fragments::Left left;
#pragma unroll
      for (int f = 0; f < held; ++f) {
        if (f % in_row == 0) Fragments::load(left, &a(row(f), k), a.stride, lane_);
        if (column(f) >= used) continue;
        typename Fragments::Right right;
        load(right, k, column(f));
        Fragments::multiply_add(sum_[f], left, right);
      }
    }
  }

  int first_, lane_;
  typename Fragments::Sum sum_[held];
};

}  // namespace kzero::kernels
