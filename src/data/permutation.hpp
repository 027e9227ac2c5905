// A shuffled order that is computed, not stored: a keyed bijection of {0 .. count-1} by a balanced
// Feistel network (Luby, Rackoff 1988) on the next even power of two, walked until the result is
// inside the set (Black, Rogaway 2002). It needs no memory for any count, so a run can resume
// anywhere in it. It is independent of tokens.
#pragma once

#include <cstdint>

#include "base/types.hpp"

namespace kzero::data {

class Permutation {
 public:
  /// Permutes `count` >= 1 elements. Each (seed, epoch) gives a different order.
  Permutation(Index count, std::uint64_t seed, std::uint64_t epoch);

  /// Returns the element at a position in [0, count).
  Index operator()(Index position) const;

 private:
  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t count_;
  std::uint64_t key_;
  int half_bits_ = 1;
};

}  // namespace kzero::data
