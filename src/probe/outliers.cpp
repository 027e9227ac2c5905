#include "probe/outliers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kzero::probe {

namespace {

constexpr double largest_z_score = 3.5;
constexpr double z_score_scale = 0.6745;  // of a normal distribution's MAD

/// With more places than this, a place's own figure hardly changes median and MAD. The median and
/// MAD of all places are then used for each.
constexpr std::size_t few = 256;

bool is_measured(double figure) { return std::isfinite(figure) && figure > 0; }

/// The typical figure of some places, on the logarithmic scale.
struct Typical {
  double median = 0;
  double spread = 0;  // MAD
};

Typical typical_of(std::span<const double> values) {
  const double median = median_of(values);
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::abs(value - median));
  return {median, median_of(deviations)};
}

/// The typical figure of all places except one.
Typical typical_without(std::vector<double> values, std::size_t place) {
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(place));
  return typical_of(values);
}

}  // namespace

double median_of(std::span<const double> figures) {
  std::vector<double> sorted;
  std::ranges::copy_if(figures, std::back_inserter(sorted),
                       [](double figure) { return std::isfinite(figure); });
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(sorted);
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

std::vector<Outlier> outliers(std::span<const double> figures, Better better, double min_factor) {
  // The logarithm of how bad each measured figure is: it grows as the figure gets worse.
  const double sign = better == Better::higher ? -1 : 1;
  std::vector<double> badness;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (!is_measured(figures[i])) continue;
    badness.push_back(sign * std::log(figures[i]));
    places.push_back(i);
  }
  if (badness.size() < 2) return {};
  const Typical of_all = typical_of(badness);
  std::vector<Outlier> found;
  for (std::size_t i = 0; i < badness.size(); ++i) {
    const Typical others = badness.size() > few ? of_all : typical_without(badness, i);
    const double excess = badness[i] - others.median;
    if (excess < std::log(min_factor)) continue;
    if (z_score_scale * excess <= largest_z_score * others.spread) continue;
    found.push_back(
        {places[i], figures[places[i]], std::exp(sign * others.median), std::exp(excess)});
  }
  return found;
}

}  // namespace kzero::probe
