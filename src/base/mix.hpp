// Mixes 64 bits, for hashes that are sums.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"

namespace kzero {

/// Spreads every bit of x over the result. Each step is invertible, so different numbers give
/// different results. The constants are those of SplitMix64 (Steele, Lea, Flood 2014).
KZERO_INLINE_FUNCTION std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace kzero
