// The rule by which a place is the odd one out: it is much worse than the typical place, and by
// more than the places differ among themselves.
//
// Figures are compared by their ratio to the median of the others, on a logarithmic scale. A place
// is odd if it is worse than the median by at least `least_factor`, and if its modified z-score,
// 0.6745 |x - median| / MAD, exceeds 3.5 (Iglewicz and Hoaglin, How to Detect and Handle Outliers,
// 1993; MAD is the median of the others' absolute deviations). Neither moves while fewer than half
// of the places are odd. Of two places, the worse one may be odd.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kzero::probe {

enum class Better { higher, lower };

struct Odd {
  std::size_t place = 0;
  double figure = 0;
  double typical = 0;
  double factor = 1;  // how much worse than typical the figure is
};

/// Returns the median of the finite figures, or NaN if there are none. For an even number, it is
/// the mean of the middle two.
double median_of(std::span<const double> figures);

/// Returns the odd places in ascending order. Figures that are not finite or not above 0 were not
/// measured and are left out.
std::vector<Odd> odd_ones(std::span<const double> figures, Better better, double least_factor);

}  // namespace kzero::probe
