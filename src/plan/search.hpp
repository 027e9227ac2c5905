// The search used for every "largest that fits".
#pragma once

#include "base/types.hpp"

namespace kzero::plan {

/// Returns the largest n >= 1 for which fits(n) is true, or 0 if there is none. fits must be true
/// up to some bound and false above it.
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
