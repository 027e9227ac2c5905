#include "probe/odd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kzero::probe {

namespace {

constexpr double largest_z_score = 3.5;
constexpr double z_score_scale = 0.6745;  // MAD of a normal distribution with unit deviation

/// With more places than this, one figure hardly moves median and MAD, so those of all places are
/// used.
constexpr std::size_t few = 256;

bool is_measured(double figure) { return std::isfinite(figure) && figure > 0; }

/// The typical value of some places, on a logarithmic scale.
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

/// Returns the typical value of all places except one.
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

std::vector<Odd> odd_ones(std::span<const double> figures, Better better, double least_factor) {
  // The logarithm of each measured figure, signed so that worse figures are larger.
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
  std::vector<Odd> found;
  for (std::size_t i = 0; i < badness.size(); ++i) {
    const Typical others = badness.size() > few ? of_all : typical_without(badness, i);
    const double excess = badness[i] - others.median;
    if (excess < std::log(least_factor)) continue;
    if (z_score_scale * excess <= largest_z_score * others.spread) continue;
    found.push_back(
        {places[i], figures[places[i]], std::exp(sign * others.median), std::exp(excess)});
  }
  return found;
}

}  // namespace kzero::probe
