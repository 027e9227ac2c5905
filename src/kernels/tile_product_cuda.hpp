// tile_product.hpp on the tensor cores of NVIDIA GPUs, for 16-bit tiles: fragments of 16 x 16 with
// fp32 sums, distributed over the warps of a team. Tiles begin at multiples of 32 bytes and their
// strides are multiples of 8 elements in 16 bits, of 4 in fp32.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <type_traits>

#include "base/float16.hpp"
#include "kernels/tile_product.hpp"

namespace kzero::kernels {

namespace detail {

template <class T>
struct TensorCoreType;
template <>
struct TensorCoreType<bf16> {
  using type = __nv_bfloat16;
};
template <>
struct TensorCoreType<fp16> {
  using type = __half;
};

}  // namespace detail

/// A sum of matrix products [rows,columns], multiples of 16, over `warps` warps of `lanes` threads.
/// `depth` is a multiple of 16 too; all threads of a warp call collectively.
template <class T, int rows, int columns, int warps, int lanes>
class TensorCoreProduct {
  using Element = typename detail::TensorCoreType<T>::type;
  using Sum = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float>;
  using Left =
      nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, Element, nvcuda::wmma::row_major>;
  template <class Layout>
  using Right = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, Element, Layout>;

 public:
#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION explicit TensorCoreProduct(int thread) : first_(thread / lanes * held) {
#pragma unroll
    for (int f = 0; f < held; ++f) nvcuda::wmma::fill_fragment(sum_[f], 0.0F);
  }

#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION void add_transposed(const Tile<const T>& a, const Tile<const T>& b,
                                             int depth) {
    if (first_ >= total) return;
    for (int k = 0; k < depth; k += 16) {
      add_step<nvcuda::wmma::col_major>(
          a, k, columns, [&](int column) { return &b(column, k); }, b.stride);
    }
  }

#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION void add(const Tile<const T>& a, const Tile<const T>& b, int depth,
                                  int used) {
    if (first_ >= total) return;
    for (int k = 0; k < depth; k += 16) {
      add_step<nvcuda::wmma::row_major>(
          a, k, used, [&](int column) { return &b(k, column); }, b.stride);
    }
  }

  // The mapping of elements to threads is undocumented but equal for all accumulators, so the
  // factors are loaded as an accumulator as well.
#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION void scale_rows(const Tile<const float>& factors) {
    if (first_ >= total) return;
    Sum factor;
#pragma unroll
    for (int f = 0; f < held; ++f) {
      if (f % in_row == 0) {
        nvcuda::wmma::load_matrix_sync(factor, &factors(row(f), 0), factors.stride,
                                       nvcuda::wmma::mem_row_major);
      }
      for (int e = 0; e < factor.num_elements; ++e) sum_[f].x[e] *= factor.x[e];
    }
  }

#pragma nv_exec_check_disable
  KOKKOS_INLINE_FUNCTION void store(const Tile<float>& to) {
    if (first_ >= total) return;
#pragma unroll
    for (int f = 0; f < held; ++f) {
      nvcuda::wmma::store_matrix_sync(&to(row(f), column(f)), sum_[f], to.stride,
                                      nvcuda::wmma::mem_row_major);
    }
  }

 private:
  // A warp's fragments are neighbours in a row of fragments, or fill complete rows.
  static constexpr int across = columns / 16, total = rows / 16 * across;
  static constexpr int held = total < warps ? 1 : total / warps;
  static constexpr int in_row = held < across ? held : across;
  static_assert(total < warps ||
                (held * warps == total && across % in_row == 0 && held % in_row == 0));

  KOKKOS_INLINE_FUNCTION int row(int f) const { return (first_ + f) / across * 16; }
  KOKKOS_INLINE_FUNCTION int column(int f) const { return (first_ + f) % across * 16; }

  /// Multiplies columns k to k + 15 of A with their counterparts in B; `at` says where a column's
  /// part begins.
#pragma nv_exec_check_disable
  template <class Layout, class At>
  KOKKOS_INLINE_FUNCTION void add_step(const Tile<const T>& a, int k, int used, const At& at,
                                       int stride) {
    Left left;
#pragma unroll
    for (int f = 0; f < held; ++f) {
      if (f % in_row == 0) nvcuda::wmma::load_matrix_sync(left, native(&a(row(f), k)), a.stride);
      if (column(f) >= used) continue;
      Right<Layout> right;
      nvcuda::wmma::load_matrix_sync(right, native(at(column(f))), stride);
      nvcuda::wmma::mma_sync(sum_[f], left, right, sum_[f]);
    }
  }

  KOKKOS_INLINE_FUNCTION static const Element* native(const T* data) {
    return reinterpret_cast<const Element*>(data);
  }

  int first_;
  Sum sum_[held];
};

/// Does plain arithmetic in fp32, which tensor cores would round to 11 bits.
template <int warps, int lanes>
struct TensorCoreArithmetic {
  template <class T, int rows, int columns>
  using GemmProblem =
      std::conditional_t<sizeof(T) == 2, TensorCoreProduct<T, rows, columns, warps, lanes>,
                         PlainProduct<T, rows, columns, warps * lanes>>;
};

}  // namespace kzero::kernels
