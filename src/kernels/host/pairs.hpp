// Pairs of bf16 values: two neighbouring terms of a sum in one 32-bit lane. Processors with AVX-512
// BF16 multiply them in this form. Elsewhere, and where that is slow, the same products are
// computed in fp32.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#include "base/float16.hpp"
#include "base/types.hpp"
#include "kernels/host/vector.hpp"

namespace kzero::kernels {

/// Two terms. The first is in the lower half.
struct Bf16Pair {
  bf16 first, second;
};
static_assert(sizeof(Bf16Pair) == 4 && std::is_trivially_copyable_v<Bf16Pair>);

/// The element type of operands in products on hosts. Attention's bf16 tiles stay in 16 bits. fp16
/// has no products with fp32 sums, so its tiles are widened.
template <class T>
using HostElement = std::conditional_t<std::is_same_v<T, bf16>, Bf16Pair, float>;

/// Number of terms of a sum per element.
template <class E>
inline constexpr Index depth = std::is_same_v<E, Bf16Pair> ? 2 : 1;

namespace detail {

using UnalignedPairVector [[gnu::vector_size(host_lanes * sizeof(std::uint32_t)),
                            gnu::aligned(sizeof(bf16)), gnu::may_alias]] = std::uint32_t;

}  // namespace detail

inline HostWords load_vector(const Bf16Pair* from) {
  return *reinterpret_cast<const detail::UnalignedPairVector*>(from);
}
inline void store_vector(Bf16Pair* to, HostWords vector) {
  *reinterpret_cast<detail::UnalignedPairVector*>(to) = vector;
}

/// How elements are multiplied: part by part. Each part of a row of vectors is multiplied by the
/// same part of all factors before the next part, because the registers have no room for two.
///
/// As they are: fp32 values, or pairs by the processor's instruction.
struct Whole {
  static constexpr int parts = 1;

  template <int part, class V>
  static V of(V element) {
    return element;
  }
  static void add(HostVector& sums, float factor, HostVector vector) { sums += factor * vector; }
#if defined(__AVX512BF16__)
  static void add(HostVector& sums, Bf16Pair factor, HostWords vector) {
    const auto factors = _mm512_set1_epi32(std::bit_cast<std::int32_t>(factor));
    sums = reinterpret_cast<HostVector>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sums),
                                                         reinterpret_cast<__m512bh>(factors),
                                                         reinterpret_cast<__m512bh>(vector)));
  }
#endif
};

/// Pairs in fp32: the upper terms, then the lower.
struct Halves {
  static constexpr int parts = 2;

  template <int part>
  static HostVector of(HostWords pairs) {
    return reinterpret_cast<HostVector>(part == 0 ? pairs & 0xFFFF0000U : pairs << 16U);
  }
  template <int part>
  static HostVector of(Bf16Pair factor) {
    return of<part>(HostWords{} + std::bit_cast<std::uint32_t>(factor));
  }
  static void add(HostVector& sums, HostVector factor, HostVector vector) {
    sums += factor * vector;
  }
};

#if defined(__AVX512BF16__)
using PairParts = Whole;
#else
using PairParts = Halves;
#endif

/// Rounds `count` values of a row, a multiple of 2 host_lanes, to pairs of neighbours.
void round_row(const float* from, Index count, Bf16Pair* to);

/// Rounds `count` values, a multiple of host_lanes, of two rows to pairs of one column each. The
/// second row may be null, which means zeros.
void round_rows(const float* first, const float* second, Index count, Bf16Pair* to);

/// Sets pair j to element j of two rows of `count` bf16 values, a multiple of 2 host_lanes.
void interleave(const Bf16Pair* first, const Bf16Pair* second, Index count, Bf16Pair* to);

}  // namespace kzero::kernels
