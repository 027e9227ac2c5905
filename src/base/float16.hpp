// Storage types for bf16 and fp16 that take 16 bits on every build; arithmetic is done in float.
// Kokkos' own half types are 4-byte floats when no device backend is on, so they cannot count
// bytes. Conversions round to nearest, ties to even, keep infinities and quiet NaNs, and run in
// kernels.
#pragma once

#include <bit>
#include <cstdint>

#include "base/host_device.hpp"
#include "base/types.hpp"

namespace kzero {

namespace detail {

KZERO_INLINE_FUNCTION std::uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t quiet_nan = (bits >> 16) | 0x40U;
  return static_cast<std::uint16_t>(value == value ? rounded : quiet_nan);
}

KZERO_INLINE_FUNCTION float bf16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Scaling by a power of two lets the float unit do the rounding of normal and subnormal results
// alike.
KZERO_INLINE_FUNCTION std::uint16_t fp16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);
  if (magnitude >= 0x477FF000U)
    return static_cast<std::uint16_t>(sign | 0x7C00U);  // rounds past 65504
  if (magnitude < 0x38800000U) {  // below 2^-14: subnormal; 0.5 + x has its last bit at 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U));
  }
  const std::uint32_t rebased = magnitude - 0x38000000U;
  return static_cast<std::uint16_t>(sign | ((rebased + 0xFFFU + ((rebased >> 13) & 1U)) >> 13));
}

KZERO_INLINE_FUNCTION float fp16_value(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFU;
  if (magnitude >= 0x7C00U)
    return std::bit_cast<float>(sign | 0x7F800000U | (magnitude & 0x3FFU) << 13);
  if (magnitude >= 0x0400U) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000U));
  const float subnormal = static_cast<float>(magnitude) * 5.9604644775390625e-8F;  // 2^-24
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

}  // namespace detail

struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  KZERO_INLINE_FUNCTION explicit bf16(float value) : bits(detail::bf16_bits(value)) {}
  KZERO_INLINE_FUNCTION explicit operator float() const { return detail::bf16_value(bits); }
};

struct fp16 {
  std::uint16_t bits = 0;

  fp16() = default;
  KZERO_INLINE_FUNCTION explicit fp16(float value) : bits(detail::fp16_bits(value)) {}
  KZERO_INLINE_FUNCTION explicit operator float() const { return detail::fp16_value(bits); }
};

static_assert(sizeof(bf16) == 2 && sizeof(fp16) == 2);

template <class T>
inline constexpr Dtype dtype_of = Dtype::fp32;
template <>
inline constexpr Dtype dtype_of<bf16> = Dtype::bf16;
template <>
inline constexpr Dtype dtype_of<fp16> = Dtype::fp16;

/// Applies INSTANTIATE(T) to the storage type T of each dtype: the explicit instantiations of a
/// template.
#define KZERO_FOR_EACH_DTYPE(INSTANTIATE) INSTANTIATE(float) INSTANTIATE(bf16) INSTANTIATE(fp16)

/// Calls f(T{}) with the storage type of a dtype.
template <class F>
decltype(auto) with_type(Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::bf16:
      return f(bf16{});
    case Dtype::fp16:
      return f(fp16{});
    default:
      return f(float{});
  }
}

}  // namespace kzero
