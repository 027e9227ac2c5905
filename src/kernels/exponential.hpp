// exp in plain arithmetic, so that compilers vectorize loops over it and every backend gives the
// same bits. Relative error below 2e-7.
#pragma once

#include <Kokkos_Macros.hpp>
#include <bit>
#include <cstdint>

namespace kzero::kernels {

/// Returns e^x; 0 below -87, saturating at e^88.
KOKKOS_INLINE_FUNCTION float exponential(float x) {
  const float clamped = x < -87.0F ? -87.0F : (x > 88.0F ? 88.0F : x);
  // x = n ln 2 + r: adding 1.5 * 2^23 rounds to the nearest integer; ln 2 in two parts keeps r
  // exact.
  const float shifted = clamped * 1.44269504F + 12582912.0F;
  const float n = shifted - 12582912.0F;
  const float r = (clamped - n * 0.693359375F) + n * 2.12194440e-4F;
  // Taylor's coefficients to the seventh power: |r| < 0.35 leaves less than 2^-26.
  float p = 1.98412698e-4F;
  p = p * r + 1.38888889e-3F;
  p = p * r + 8.33333333e-3F;
  p = p * r + 4.16666667e-2F;
  p = p * r + 1.66666667e-1F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23;
  const float result = p * std::bit_cast<float>(exponent);
  return x < -87.0F ? 0.0F : (x == x ? result : x);
}

}  // namespace kzero::kernels
