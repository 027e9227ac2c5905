// Marks functions that both hosts and kernels call. KOKKOS_INLINE_FUNCTION means the same, but a
// source file that includes a Kokkos header must be compiled by the device compiler, which takes
// several times as long.
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)
#define KZERO_INLINE_FUNCTION inline __host__ __device__
#else
#define KZERO_INLINE_FUNCTION inline
#endif
