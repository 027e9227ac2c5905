// The search behind every "largest that fits".
#pragma once

#include "base/types.hpp"

namespace kzero::plan {

/// Returns the largest n >= 1 for which fits(n) holds, 0 if there is none. fits holds for every n
/// up to a bound, and for none above it.
template <class Fits>
Index largest(const Fits& fits) {
  if (!fits(Index{1})) return 0;
  Index low = 1, high = 2;
  while (fits(high)) low = high, high *= 2;
  while (high - low > 1) {
    const Index middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace kzero::plan
