// A vector register of floats, for host kernels whose loops compilers do not vectorize well by
// themselves.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__F16C__) || defined(__FMA__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "base/float16.hpp"

namespace kzero::kernels {

/// Number of elements in a vector register.
#if defined(__AVX512F__)
inline constexpr int host_lanes = 16;
#elif defined(__AVX2__)
inline constexpr int host_lanes = 8;
#else
inline constexpr int host_lanes = 4;
#endif

using HostVector [[gnu::vector_size(host_lanes * sizeof(float))]] = float;
using HostWords [[gnu::vector_size(host_lanes * sizeof(std::uint32_t))]] = std::uint32_t;

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

/// x * y + z, rounded once where the processor can. In a sum of two products a compiler fuses
/// either, and those of other processors the other, which gives other bits.
inline HostVector fused(HostVector x, HostVector y, HostVector z) {
#if defined(__AVX512F__)
  return reinterpret_cast<HostVector>(_mm512_fmadd_ps(
      reinterpret_cast<__m512>(x), reinterpret_cast<__m512>(y), reinterpret_cast<__m512>(z)));
#elif defined(__AVX2__) && defined(__FMA__)
  return reinterpret_cast<HostVector>(_mm256_fmadd_ps(
      reinterpret_cast<__m256>(x), reinterpret_cast<__m256>(y), reinterpret_cast<__m256>(z)));
#elif defined(__ARM_NEON) && defined(__aarch64__)
  return reinterpret_cast<HostVector>(vfmaq_f32(reinterpret_cast<float32x4_t>(z),
                                                reinterpret_cast<float32x4_t>(x),
                                                reinterpret_cast<float32x4_t>(y)));
#else
  return x * y + z;
#endif
}

/// Loads elements of any type as fp32.
inline HostVector load_widened(const float* from) { return load_vector(from); }

inline HostVector load_widened(const bf16* from) {
  using Bits [[gnu::vector_size(host_lanes * sizeof(std::uint16_t)),
               gnu::aligned(sizeof(std::uint16_t)), gnu::may_alias]] = std::uint16_t;
  const auto words = __builtin_convertvector(*reinterpret_cast<const Bits*>(from), HostWords);
  return reinterpret_cast<HostVector>(words << 16U);
}

// Masks all lanes: the form without a mask leaves compilers an uninitialised value.
inline HostVector load_widened(const fp16* from) {
#if defined(__AVX512F__)
  const auto* bits = reinterpret_cast<const __m256i*>(from);
  return reinterpret_cast<HostVector>(_mm512_maskz_cvtph_ps(0xFFFF, _mm256_loadu_si256(bits)));
#elif defined(__AVX2__) && defined(__F16C__)
  const auto* bits = reinterpret_cast<const __m128i*>(from);
  return reinterpret_cast<HostVector>(_mm256_cvtph_ps(_mm_loadu_si128(bits)));
#else
  HostVector values = {};
  for (int i = 0; i < host_lanes; ++i) values[i] = static_cast<float>(from[i]);
  return values;
#endif
}

using HostHalves [[gnu::vector_size(host_lanes * sizeof(std::uint16_t))]] = std::uint16_t;

/// Rounds values to bf16: 16-bit lanes, or the lower halves of 32-bit lanes. The result is that of
/// bf16's constructor, except that subnormal results are zero where the processor rounds.
#if defined(__AVX512BF16__)
inline HostHalves bf16_halves(HostVector values) {
  return reinterpret_cast<HostHalves>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(values)));
}
inline HostWords bf16_words(HostVector values) {
  return __builtin_convertvector(bf16_halves(values), HostWords);
}
#else
inline HostWords bf16_words(HostVector values) {
  const auto bits = reinterpret_cast<HostWords>(values);
  const HostWords rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
  return values == values ? rounded : (bits >> 16U) | 0x40U;
}
inline HostHalves bf16_halves(HostVector values) {
  return __builtin_convertvector(bf16_words(values), HostHalves);
}
#endif

/// Rounds to elements of any type and stores them.
inline void store_rounded(float* to, HostVector vector) { store_vector(to, vector); }

inline void store_rounded(bf16* to, HostVector vector) {
  const HostHalves halves = bf16_halves(vector);
  std::memcpy(static_cast<void*>(to), &halves, sizeof halves);
}

inline void store_rounded(fp16* to, HostVector vector) {
#if defined(__AVX512F__)
  const __m256i halves = _mm512_maskz_cvtps_ph(0xFFFF, reinterpret_cast<__m512>(vector),
                                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), halves);
#elif defined(__AVX2__) && defined(__F16C__)
  const __m128i halves = _mm256_cvtps_ph(reinterpret_cast<__m256>(vector),
                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves);
#else
  for (int i = 0; i < host_lanes; ++i) to[i] = fp16(vector[i]);
#endif
}

}  // namespace kzero::kernels
