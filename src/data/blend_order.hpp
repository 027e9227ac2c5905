// Which source of a blend a sample comes from: a pure function of the sample's number, such that
// after any number of samples each source has given its share of them to less than one sample. It
// knows nothing of tokens.
//
// The choice is R. Tijdeman's ("The chairman assignment problem", Discrete Mathematics 32, 1980),
// whose largest deviation, 1 - 1 / (2m - 2) for m sources, no other order undercuts for all
// weights. It is periodic: once every source has given its whole share exactly it begins again, so
// one period is a table and the place of any sample is looked up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace kzero::data {

/// Returns integers in the proportion of the weights, none 0, without common divisor, whose sum is
/// at most a million: exactly their proportion if a power of ten up to 10^6 makes all of them
/// integers with such a sum, else rounded to millionths of the sum (largest remainders first, then
/// in the order of the list). Each weight must be above 0, and a millionth of the sum or more.
std::vector<Index> shares_of(std::span<const double> weights);

class BlendOrder {
 public:
  /// Takes the shares of one or more sources, at most 256. Takes 5 bytes for each sample of a
  /// period, the sum of the shares.
  explicit BlendOrder(std::vector<Index> shares);

  struct Place {
    Index source;
    Index sample;  // of that source, counted from 0

    bool operator==(const Place&) const = default;
  };

  /// The place of a sample of the blend.
  Place operator()(Index sample) const;

  /// The number of samples that a source gives to the first `samples` of the blend.
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
