// exp in plain arithmetic, so that compilers vectorize loops over it and every backend gives the
// same bits. Relative error below 2e-7. Of one float or, on hosts, of a vector register of them
// (host_arithmetic.hpp).
#pragma once

#include <Kokkos_MathematicalFunctions.hpp>
#include <bit>
#include <cstdint>

namespace kzero::kernels {

/// What functions of a float or of each lane of a vector need beside operators. In vectors
/// choices are written as such: compilers that see branches repeat what follows on both sides.
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
  /// x, or the limit that it passes; NaN for NaN.
  static KOKKOS_INLINE_FUNCTION float clamp(float x, float least, float most) {
    return x < least ? least : (x > most ? most : x);
  }
  /// 2^n for a whole number in [-126, 127].
  static KOKKOS_INLINE_FUNCTION float power_of_two(float n) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127)
                                << 23);
  }
  /// factor * x + y, rounded once.
  static KOKKOS_INLINE_FUNCTION float fma(float factor, float x, float y) {
    return Kokkos::fma(factor, x, y);
  }
  /// 0 where x is less than the limit, else the value.
  static KOKKOS_INLINE_FUNCTION float zero_below(float x, float limit, float value) {
    return x < limit ? 0.0F : value;
  }
};

/// Returns e^x, saturating at e^-87 and at e^88; NaN for NaN.
template <class V>
KOKKOS_INLINE_FUNCTION V saturating_exponential(V x) {
  const V clamped = Arithmetic<V>::clamp(x, -87.0F, 88.0F);
  // x = n ln 2 + r: adding 1.5 * 2^23 rounds to the nearest integer; ln 2 in two parts keeps r
  // exact.
  const V shifted = clamped * 1.44269504F + 12582912.0F;
  const V n = shifted - 12582912.0F;
  const V r = (clamped - n * 0.693359375F) + n * 2.12194440e-4F;
  // Taylor's coefficients to the seventh power: |r| < 0.35 leaves less than 2^-26.
  V p = r * 1.98412698e-4F + 1.38888889e-3F;
  p = p * r + 8.33333333e-3F;
  p = p * r + 4.16666667e-2F;
  p = p * r + 1.66666667e-1F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  return p * Arithmetic<V>::power_of_two(n);
}

/// Returns e^x; 0 below -87, saturating at e^88; NaN for NaN.
template <class V>
KOKKOS_INLINE_FUNCTION V exponential(V x) {
  return Arithmetic<V>::zero_below(x, -87.0F, saturating_exponential(x));
}

}  // namespace kzero::kernels
