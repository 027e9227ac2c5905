// Fragments of 16 x 16 of a 16-bit matrix product with fp32 sums, distributed over a warp's 32
// lanes as PTX documents for ldmatrix and mma.m16n8k16 (PTX ISA, "Warp-level Matrix Fragments for
// mma.m16n8k16"). Let g = lane / 4 and c = lane % 4. Of the left factor [row,k] and of the sum
// [row,column] a lane holds rows g and g + 8. Of the right factor [k,column] it holds columns g and
// g + 8. Along the other dimension it holds the pairs 2c, 2c + 1 and 2c + 8, 2c + 9. Because these
// places are known, a lane can scale rows without loading their factors as a fragment. It can also
// turn a sum into the left factor of another product, because both have the same places.
#pragma once

#include <Kokkos_Macros.hpp>
#include <Kokkos_MathematicalFunctions.hpp>
#include <cstdint>

#include "kernels/device/tile_product.hpp"

namespace kzero::kernels {

/// The place of a pair of neighbours in a row of a sum. `slot` numbers the lane's rows.
struct PairPlace {
  int slot, row, column;
};

/// Instructions is a class like that of tile_product_cuda.hpp. Tiles and their rows begin at
/// multiples of 16 bytes. All lanes of a warp call collectively.
template <class T, class Instructions>
struct WarpFragments {
  struct Left {
    std::uint32_t x[4];  // (g, 2c), (g + 8, 2c), (g, 2c + 8), (g + 8, 2c + 8), two elements each
  };
  struct Right {
    std::uint32_t x[4];  // columns 0 to 7: k = 2c and 2c + 8; columns 8 to 15: the same
  };
  struct Sum {
    float x[8];  // columns 0 to 7: (g, 2c), (g, 2c + 1), (g + 8, 2c), (g + 8, 2c + 1); then 8 to 15
  };

  static constexpr int rows = 2, pairs = 4;  // of a sum, per lane

  KOKKOS_INLINE_FUNCTION static int row(int lane, int slot) { return lane / 4 + slot * 8; }
  KOKKOS_INLINE_FUNCTION static PairPlace place(int lane, int pair) {
    return {pair % 2, row(lane, pair % 2), lane % 4 * 2 + pair / 2 * 8};
  }

  /// True for one of the lanes that share their rows.
  KOKKOS_INLINE_FUNCTION static bool is_first_in_row(int lane) { return lane % 4 == 0; }

  KOKKOS_INLINE_FUNCTION static float* pair(Sum& sum, int number) { return &sum.x[2 * number]; }

  KOKKOS_INLINE_FUNCTION static void clear(Sum& sum) {
    for (float& x : sum.x) x = 0;
  }

  /// Loads [row,k] of a tile that begins at `data`.
#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION static void load(Left& left, const T* data, int stride, int lane) {
    Instructions::load(left.x, data + lane % 16 * stride + lane / 16 * 8);
  }

  /// Loads [k,column] of a tile whose rows are columns of the factor.
#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION static void load_columns(Right& right, const T* data, int stride,
                                                  int lane) {
    Instructions::load(right.x, data + (lane / 16 * 8 + lane % 8) * stride + lane / 8 % 2 * 8);
  }

  /// Loads [k,column] of a tile whose rows are rows of the factor.
#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION static void load_rows(Right& right, const T* data, int stride, int lane) {
    Instructions::load_transposed(right.x, data + lane % 16 * stride + lane / 16 * 8);
  }

#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION static void multiply_add(Sum& sum, const Left& left, const Right& right) {
    Instructions::template multiply_add<T>(&sum.x[0], left.x, right.x[0], right.x[1]);
    Instructions::template multiply_add<T>(&sum.x[4], left.x, right.x[2], right.x[3]);
  }

  /// Multiplies row i by factors(i,0).
  KOKKOS_INLINE_FUNCTION static void scale_rows(Sum& sum, const Tile<const float>& factors,
                                                int lane) {
    const float upper = factors(lane / 4, 0), lower = factors(lane / 4 + 8, 0);
    for (int half = 0; half < 8; half += 4) {
      sum.x[half] *= upper;
      sum.x[half + 1] *= upper;
      sum.x[half + 2] *= lower;
      sum.x[half + 3] *= lower;
    }
  }

  KOKKOS_INLINE_FUNCTION static void store(const Sum& sum, const Tile<float>& to, int lane) {
    const int row = lane / 4, column = lane % 4 * 2;
    for (int half = 0; half < 2; ++half) {
      const float* x = &sum.x[4 * half];
      store_pair(x[0], x[1], &to(row, column + 8 * half));
      store_pair(x[2], x[3], &to(row + 8, column + 8 * half));
    }
  }

  /// Rounds a sum to a left factor whose k are the sum's columns.
#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION static void round(Left& left, const Sum& sum) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      left.x[i] = Instructions::template pack<T>(sum.x[2 * i], sum.x[2 * i + 1]);
  }

  /// Stores a pair of neighbours. `to` is aligned to 4 bytes.
#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION static void store_rounded(T* to, float first, float second) {
    *reinterpret_cast<std::uint32_t*>(to) = Instructions::template pack<T>(first, second);
  }

  /// Returns the largest of the values of a row's lanes.
#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION static float largest_in_row(float x) {
    x = Kokkos::fmax(x, Instructions::exchange(x, 1));
    return Kokkos::fmax(x, Instructions::exchange(x, 2));
  }

  /// Returns the sum of the values of a row's lanes.
#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION static float sum_in_row(float x) {
    x += Instructions::exchange(x, 1);
    return x + Instructions::exchange(x, 2);
  }

#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION static float power_of_two(float x) {
    return Instructions::power_of_two(x);
  }

  /// Begins to copy `bytes` bytes, or to clear them if `is_there` is false. The data arrives after
  /// wait_for_copies() and a barrier.
#pragma nv_exec_check_disable
  template <int bytes>
  KOKKOS_INLINE_FUNCTION static void copy(void* to, const void* from, bool is_there) {
    Instructions::template copy<bytes>(to, from, is_there);
  }

  /// Waits for the copies that this thread began.
#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION static void wait_for_copies() { Instructions::wait_for_copies(); }

 private:
  struct alignas(8) Pair {
    float first, second;
  };

  KOKKOS_INLINE_FUNCTION static void store_pair(float first, float second, float* to) {
    *reinterpret_cast<Pair*>(to) = {first, second};
  }
};

}  // namespace kzero::kernels
