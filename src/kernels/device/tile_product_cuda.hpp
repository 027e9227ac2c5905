// tile_product.hpp on the tensor cores of NVIDIA GPUs, with the instructions for
// warp_fragments.hpp. nvcuda::wmma uses these instructions only for fp16; it loads bf16 tiles
// element by element.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/float16.hpp"
#include "kernels/device/tensor_core_product.hpp"
#include "kernels/device/warp_fragments.hpp"

namespace kzero::kernels {

/// PTX's ldmatrix, mma.sync and related instructions. A warp's lanes call collectively. In a load,
/// lane l names row l % 8 of matrix l / 8, which is 8 elements of 16 bits in shared memory.
struct TensorCoreInstructions {
  __device__ static void load(std::uint32_t (&x)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared(row))
                 : "memory");
  }

  __device__ static void load_transposed(std::uint32_t (&x)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared(row))
                 : "memory");
  }

  /// Adds the product of a [16,16] and b [16,8] to sum [16,8].
  template <class T>
  __device__ static void multiply_add(float* sum, const std::uint32_t (&a)[4], std::uint32_t b0,
                                      std::uint32_t b1) {
    if constexpr (std::is_same_v<T, bf16>) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
          "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
      static_assert(std::is_same_v<T, fp16>);
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
          "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
  }

  /// Rounds two values to T. The first is in the lower half.
  template <class T>
  __device__ static std::uint32_t pack(float first, float second) {
    std::uint32_t pair;
    if constexpr (std::is_same_v<T, bf16>) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    } else {
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    }
    return pair;
  }

  /// Returns the x of the lane whose number differs in the bits of `mask`.
  __device__ static float exchange(float x, int mask) {
    return __shfl_xor_sync(0xFFFFFFFFU, x, mask);
  }

  /// Returns 2^x as the hardware approximates it: two units in the last place, 0 below -126.
  __device__ static float power_of_two(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
  }

  /// Begins to copy from global to shared memory, or to clear the destination.
  template <int bytes>
  __device__ static void copy(void* to, const void* from, bool is_there) {
    const int size = is_there ? bytes : 0;
    if constexpr (bytes == 16) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared(to)), "l"(from),
                   "r"(size)
                   : "memory");
    } else {
      static_assert(bytes == 4);
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared(to)), "l"(from),
                   "r"(size)
                   : "memory");
    }
  }

  __device__ static void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

 private:
  __device__ static std::uint32_t shared(const void* address) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
  }
};

/// fp32 uses plain arithmetic, because tensor cores would round it to 11 bits.
template <int warps_of_team, int lanes_of_warp>
struct TensorCoreArithmetic {
  static constexpr int warps = warps_of_team, lanes = lanes_of_warp;

  template <class T>
  using Fragments = WarpFragments<T, TensorCoreInstructions>;

  template <class T, int rows, int columns>
  using GemmProblem =
      std::conditional_t<sizeof(T) == 2,
                         TensorCoreProduct<Fragments<T>, T, rows, columns, warps, lanes>,
                         PlainProduct<T, rows, columns, warps * lanes>>;
};

}  // namespace kzero::kernels
