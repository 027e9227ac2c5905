// Sums without rounding. They do not depend on order or grouping, so a sum over ranks is the same
// for any number of ranks.
#pragma once

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstdint>
#include <span>

#include "base/types.hpp"

namespace kzero::kernels {

/// The exact sum of up to 2^31 fp32 values >= 0. It is a fixed-point number whose lowest bit is
/// 2^-149, fp32's smallest value. Limb i counts units of 2^(32 i - 149). Its upper half collects
/// carries.
struct ExactSum {
  static constexpr int limbs = 9;
  static constexpr int words_of_sum = limbs + 1;
  std::uint64_t word[limbs + 1] = {};  // the limbs, and the number of values that were not finite

  KOKKOS_INLINE_FUNCTION void add(float value) {
    const auto bits = Kokkos::bit_cast<std::uint32_t>(value);
    const std::uint32_t exponent = bits >> 23U & 0xFFU;
    if (exponent == 0xFFU) {
      ++word[limbs];
      return;
    }
    const std::uint32_t hidden = exponent == 0 ? 0 : 1;  // subnormal values have no leading one
    const std::uint64_t mantissa = (bits & 0x7FFFFFU) | hidden << 23U;
    const std::uint32_t place = exponent - hidden;  // position of the mantissa's lowest bit
    const std::uint64_t shifted = mantissa << place % 32U;
    word[place / 32U] += shifted & 0xFFFFFFFFU;
    word[place / 32U + 1] += shifted >> 32U;
  }

  KOKKOS_INLINE_FUNCTION ExactSum& operator+=(const ExactSum& other) {
    for (int i = 0; i <= limbs; ++i) word[i] += other.word[i];
    return *this;
  }

  /// The words, to be added to those of other ranks.
  std::span<std::uint64_t> words() { return word; }

  /// Returns sum number `sum` of an array of consecutive sums.
  static ExactSum of_words(const std::uint64_t* words, Index sum) {
    ExactSum found;
    std::copy_n(words + sum * words_of_sum, words_of_sum, found.word);
    return found;
  }

  /// Moves carries up, so that as many sums can be added again.
  KOKKOS_INLINE_FUNCTION void carry() {
    for (int i = 0; i + 1 < limbs; ++i) {
      word[i + 1] += word[i] >> 32U;
      word[i] &= 0xFFFFFFFFU;
    }
  }

  /// The value rounded to fp64. NaN if a value was not finite.
  KOKKOS_INLINE_FUNCTION double value() const {
    if (word[limbs] > 0) return Kokkos::Experimental::quiet_NaN_v<double>;
    ExactSum sum = *this;
    sum.carry();
    double total = 0;
    for (int i = limbs - 1; i >= 0; --i) {
      // 2^(32 i - 149): products with it are exact.
      const auto unit = Kokkos::bit_cast<double>(std::uint64_t{1023U - 149U + 32U * i} << 52U);
      total += static_cast<double>(sum.word[i]) * unit;
    }
    return total;
  }
};

}  // namespace kzero::kernels
