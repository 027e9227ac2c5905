// Finds outliers, the odd places of a launch: each is much worse than the typical place, and by
// more than the places differ among themselves.
//
// Figures are compared by their ratio to the median of the others, on a logarithmic scale. A place
// is odd if it is worse than that by at least `min_factor`, and if its modified z-score,
// 0.6745 |x - median| / MAD, exceeds 3.5 (Iglewicz and Hoaglin, How to Detect and Handle Outliers,
// 1993; MAD is the median of the others' absolute deviations). Median and MAD barely change as long
// as fewer than half of the places are odd. If there are two places, only the worse one can be odd.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kzero::probe {

enum class Better { higher, lower };

struct Outlier {
  std::size_t place = 0;
  double figure = 0;
  double typical = 0;
  double factor = 1;  // by which the figure is worse than the typical one
};

/// Returns the median of the finite figures: the mean of the middle two if their number is even,
/// NaN if there are none.
double median_of(std::span<const double> figures);

/// Returns the odd ones in ascending order of their places. A figure that is not finite or not
/// above 0 was not measured and is left out.
std::vector<Outlier> outliers(std::span<const double> figures, Better better, double min_factor);

}  // namespace kzero::probe
