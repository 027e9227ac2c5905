// Chooses the source of each sample of a blend, as a pure function of the sample's number. After
// any number of samples, the count of each source differs from its share of them by less than one
// sample. It is independent of tokens.
//
// The choice is R. Tijdeman's ("The chairman assignment problem", Discrete Mathematics 32, 1980).
// Its largest deviation is 1 - 1 / (2m - 2) for m sources; no other order has a smaller one for all
// weights. The order is periodic: it repeats once every source has given exactly its share. One
// period is therefore stored as a table, and the place of any sample is looked up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace kzero::data {

/// Returns positive integers in the proportion of the weights, without common divisor, with a sum
/// of at most a million. The proportion is exact if a power of ten up to 10^6 makes all weights
/// integers with such a sum. Otherwise they are rounded to millionths of the sum (largest
/// remainders first, then in the order of the list). Each weight must be above 0, and at least a
/// millionth of the sum.
std::vector<Index> shares_of(std::span<const double> weights);

class BlendOrder {
 public:
  /// Takes the shares of 1 to 256 sources. Uses 5 bytes for each sample of a period; the period is
  /// the sum of the shares.
  explicit BlendOrder(std::vector<Index> shares);

  struct Place {
    Index source;
    Index sample;  // number within that source, from 0

    bool operator==(const Place&) const = default;
  };

  /// The place of a sample of the blend.
  Place operator()(Index sample) const;

  /// The number of a source's samples among the first `samples` of the blend.
  Index count(Index source, Index samples) const;

  const std::vector<Index>& shares() const { return shares_; }
  Index period() const { return static_cast<Index>(source_.size()); }

 private:
  Index next_source(Index position, const std::vector<Index>& given) const;

  std::vector<Index> shares_;
  std::vector<std::uint8_t> source_;   // of each sample of a period
  std::vector<std::uint32_t> sample_;  // of that source, in the period
};

}  // namespace kzero::data
