// exp. On hosts in plain arithmetic: compilers vectorize loops over it, and the relative error is
// below 2e-7. Devices use their instruction, with a relative error below 2.4e-7 + 1.4e-7 |x| (CUDA
// C++ Programming Guide, __expf). V is float or, on hosts, a vector register of floats
// (host/arithmetic.hpp).
#pragma once

#include <Kokkos_MathematicalFunctions.hpp>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace kzero::kernels {

/// Functions of a float, or of each lane of a vector, that are not operators. Vectors use
/// selections instead of branches, because compilers repeat the code that follows a branch on both
/// sides.
template <class V>
struct Arithmetic;

template <>
struct Arithmetic<float> {
  using Words = std::uint32_t;  // of the same size

  static KOKKOS_INLINE_FUNCTION float of_unsigned(Words n) { return static_cast<float>(n); }
  static KOKKOS_INLINE_FUNCTION float of_signed(Words n) {
    return static_cast<float>(static_cast<std::int32_t>(n));
  }
  static KOKKOS_INLINE_FUNCTION float sqrt(float x) { return Kokkos::sqrt(x); }
  /// x clamped to [least, most]; NaN for NaN.
  static KOKKOS_INLINE_FUNCTION float clamp(float x, float min, float max) {
    return x < min ? min : (x > max ? max : x);
  }
  /// 2^n for an integer n in [-126, 127].
  static KOKKOS_INLINE_FUNCTION float power_of_two(float n) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127)
                                << 23);
  }
  /// factor * x + y, rounded once. In a sum of two products, it determines which one is fused.
  static KOKKOS_INLINE_FUNCTION float fma(float factor, float x, float y) {
    return Kokkos::fma(factor, x, y);
  }
  /// 0 where x is less than the limit, else the value.
  static KOKKOS_INLINE_FUNCTION float zero_below(float x, float limit, float value) {
    return x < limit ? 0.0F : value;
  }
};

/// Returns e^x for x in [-87, 88].
template <class V>
KOKKOS_INLINE_FUNCTION V plain_exponential(V x) {
  // x = n ln 2 + r. Adding 1.5 * 2^23 rounds to the nearest integer. Splitting ln 2 into two parts
  // keeps r exact.
  const V shifted = x * 1.44269504F + 12582912.0F;
  const V n = shifted - 12582912.0F;
  const V r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  // Taylor coefficients to the seventh power. With |r| < 0.35 the error is below 2^-26.
  V p = r * 1.98412698e-4F + 1.38888889e-3F;
  p = p * r + 8.33333333e-3F;
  p = p * r + 4.16666667e-2F;
  p = p * r + 1.66666667e-1F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  return p * Arithmetic<V>::power_of_two(n);
}

/// Returns e^x, saturating at e^-87 and at e^88; NaN for NaN.
template <class V>
KOKKOS_INLINE_FUNCTION V saturating_exponential(V x) {
  const V clamped = Arithmetic<V>::clamp(x, -87.0F, 88.0F);
  if constexpr (std::is_same_v<V, float>) {
    KOKKOS_IF_ON_DEVICE((return __expf(clamped);))
    KOKKOS_IF_ON_HOST((return plain_exponential(clamped);))
  } else {
    return plain_exponential(clamped);
  }
}

/// Returns e^x; 0 below -87, saturating at e^88; NaN for NaN.
template <class V>
KOKKOS_INLINE_FUNCTION V exponential(V x) {
  return Arithmetic<V>::zero_below(x, -87.0F, saturating_exponential(x));
}

}  // namespace kzero::kernels
