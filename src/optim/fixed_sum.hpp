// Sums of squares of a gradient's elements, independent of order and grouping. A sum is a 16-byte
// fixed-point number. Its scale follows from the squared norm of the gradient, which no sum
// exceeds.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/types.hpp"

namespace kzero::optim {

/// The scale of one step's sums. The high word counts units of 2^(E - 62), where 2^E exceeds the
/// squared norm. The low word sums the remainders of up to 2^31 elements, truncated at 2^(E - 94).
/// A gradient element below 2^-47 of the norm therefore counts as 0.
class FixedSums {
 public:
  static constexpr Index words = 2;

  /// `norm` is the norm of the full gradient as stored.
  explicit FixedSums(double norm)
      : exponent_(norm > 0 ? std::ilogb(norm) * 2 + 3 : 0),
        scale_(std::ldexp(1.0, 62 - exponent_)) {}

  /// The words of one square or, added word by word, of a sum of squares.
  struct Words {
    std::int64_t high, low;
  };

  Words words_of(float gradient) const {
    const double exact = static_cast<double>(gradient);
    const double units = exact * exact * scale_;
    const auto high = static_cast<std::int64_t>(units);
    const auto low = static_cast<std::int64_t>((units - static_cast<double>(high)) * 0x1p32);
    return {high, low};
  }

  double value(const std::uint64_t* sum) const {
    return (static_cast<double>(sum[0]) + static_cast<double>(sum[1]) * 0x1p-32) / scale_;
  }

 private:
  int exponent_;
  double scale_;
};

}  // namespace kzero::optim
