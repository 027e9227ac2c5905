// Counter-based random numbers (Philox4x32-10; Salmon et al., SC11). A draw is a pure function of
// (key, counter): it depends on the element, and never on the grid, the thread or the order of
// calls.
#pragma once

#include <array>
#include <cstdint>

#include "base/host_device.hpp"

namespace kzero {

struct Philox4 {
  std::uint32_t word[4];
};

/// Four independent 32-bit words for one key and counter.
KZERO_INLINE_FUNCTION Philox4 philox(std::uint64_t key, std::uint64_t counter_low,
                                     std::uint64_t counter_high) {
  Philox4 c{{static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
             static_cast<std::uint32_t>(counter_high),
             static_cast<std::uint32_t>(counter_high >> 32)}};
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * c.word[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * c.word[2];
    c = Philox4{
        {static_cast<std::uint32_t>(p1 >> 32) ^ c.word[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c.word[3] ^ k1, static_cast<std::uint32_t>(p0)}};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

// Mixes 64 bits, for hashes that are sums.

/// Spreads every bit of x over the result. Each step is invertible, so different numbers give
/// different results. The constants are those of SplitMix64 (Steele, Lea, Flood 2014).
KZERO_INLINE_FUNCTION std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace kzero
