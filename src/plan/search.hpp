// The searches for every "largest that fits".
#pragma once

#include <algorithm>
#include <cmath>

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

/// Returns the largest n >= 1 for which load(n) <= 1, or 0 if there is none. load must not
/// decrease. Where it is nearly a straight line, a few calls are enough: each may take long.
template <class Load>
Index largest_by_load(const Load& load) {
  constexpr Index max_growth = 16;
  Index low = 1, high = 2;
  double at_low = load(low), at_high = 0;
  if (!(at_low <= 1)) return 0;
  while ((at_high = load(high)) <= 1) {
    const double each = (at_high - at_low) / static_cast<double>(high - low);
    const double room = each > 0 ? (1 - at_high) / each : INFINITY;
    low = high, at_low = at_high;
    high += 1 + static_cast<Index>(std::min(room, static_cast<double>((max_growth - 1) * low)));
  }
  for (bool halve = false; high - low > 1;) {
    const Index width = high - low;
    Index guess = low + width / 2;
    if (!halve && std::isfinite(at_high)) {
      const double part = (1 - at_low) / (at_high - at_low);
      guess = std::clamp(low + static_cast<Index>(part * static_cast<double>(width)), low + 1,
                         high - 1);
    }
    const double at_guess = load(guess);
    (at_guess <= 1 ? low : high) = guess;
    (at_guess <= 1 ? at_low : at_high) = at_guess;
    halve = !halve && 2 * (high - low) > width;
  }
  return low;
}

}  // namespace kzero::plan
