// A vector register of floats, for host kernels whose loops compilers do not put into registers by
// themselves.
#pragma once

namespace kzero::kernels {

/// Elements of a vector register.
#if defined(__AVX512F__)
inline constexpr int host_lanes = 16;
#elif defined(__AVX2__)
inline constexpr int host_lanes = 8;
#else
inline constexpr int host_lanes = 4;
#endif

using HostVector [[gnu::vector_size(host_lanes * sizeof(float))]] = float;

namespace detail {

using UnalignedVector
    [[gnu::vector_size(host_lanes * sizeof(float)), gnu::aligned(sizeof(float)), gnu::may_alias]] =
        float;

}  // namespace detail

inline HostVector load_vector(const float* from) {
  return *reinterpret_cast<const detail::UnalignedVector*>(from);
}
inline void store_vector(float* to, HostVector vector) {
  *reinterpret_cast<detail::UnalignedVector*>(to) = vector;
}

}  // namespace kzero::kernels
