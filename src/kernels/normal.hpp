// Normal numbers in plain arithmetic. V is float or, on hosts, a vector register of floats. With
// the library's logarithm, sine and cosine, drawing them would dominate a run's start.
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

/// Returns the natural logarithm of a normal number > 0; relative error below 3e-7.
template <class V>
KOKKOS_INLINE_FUNCTION V logarithm(V x) {
  using Words = typename Arithmetic<V>::Words;
  constexpr std::uint32_t one = 0x3F800000U, sqrt_half = 0x3F3504F3U;
  // x = 2^n m with m in [sqrt(1/2), sqrt(2)). Adding one - sqrt_half makes the exponent n's.
  const Words bits = std::bit_cast<Words>(x);
  const Words n = ((bits + (one - sqrt_half)) >> 23U) - 127U;
  const V m = std::bit_cast<V>(bits - (n << 23U));
  // log m = 2 artanh(s), |s| < 0.172. Its series to the ninth power has an error below 2^-27.
  const V s = (m - 1.0F) / (m + 1.0F), square = s * s;
  V p = square * 0.111111111F + 0.142857143F;
  p = p * square + 0.2F;
  p = p * square + 0.333333333F;
  const V series = 2.0F * s + 2.0F * s * square * p;
  const V exponent = Arithmetic<V>::of_signed(n);  // times ln 2 in two parts, the first exact
  return exponent * 0.693359375F + (series - exponent * 2.12194440e-4F);
}

/// Returns the cosine and the sine of the angle 2 pi turns / 2^32; absolute error below 2e-7.
template <class V>
KOKKOS_INLINE_FUNCTION Pair<V> cosine_and_sine(typename Arithmetic<V>::Words turns) {
  using Words = typename Arithmetic<V>::Words;
  // The nearest multiple of a quarter turn, and the rest, at most an eighth turn. Both are exact.
  const Words quarter = (turns + 0x20000000U) >> 30U;
  const V x = Arithmetic<V>::of_signed(turns - (quarter << 30U)) * (6.2831853F * 0x1.0p-32F);
  const V square = x * x;
  // Taylor coefficients to the tenth power. With |x| < pi / 4 the error is below 2^-28.
  V s = square * 2.75573192e-6F - 1.98412698e-4F;
  s = s * square + 8.33333333e-3F;
  s = s * square - 1.66666667e-1F;
  s = x + x * square * s;
  V c = square * -2.75573192e-7F + 2.48015873e-5F;
  c = c * square - 1.38888889e-3F;
  c = c * square + 4.16666667e-2F;
  c = c * square - 0.5F;
  c = c * square + 1.0F;
  const auto odd = (quarter & 1U) != 0U;
  const V cosine = odd ? s : c, sine = odd ? c : s;
  // The cosine is negative in quarters 1 and 2, the sine in 2 and 3.
  const Words cosine_sign = ((quarter + 1U) & 2U) << 30U, sine_sign = (quarter & 2U) << 30U;
  return {std::bit_cast<V>(std::bit_cast<Words>(cosine) ^ cosine_sign),
          std::bit_cast<V>(std::bit_cast<Words>(sine) ^ sine_sign)};
}

/// Returns two independent standard normal numbers from two independent words (Box and Muller).
template <class V>
KOKKOS_INLINE_FUNCTION Pair<V> normal_pair(typename Arithmetic<V>::Words a,
                                           typename Arithmetic<V>::Words b) {
  // Half a unit is added so that the uniform number is above zero and its logarithm finite.
  const V uniform = (Arithmetic<V>::of_unsigned(a) + 0.5F) * 0x1.0p-32F;
  const V radius = Arithmetic<V>::sqrt(-2.0F * logarithm(uniform));
  const Pair<V> direction = cosine_and_sine<V>(b);
  return {radius * direction.first, radius * direction.second};
}

}  // namespace kzero::kernels
