#include "data/blend_order.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"

namespace kzero::data {

namespace {

constexpr Index finest = 1000000;  // the most parts into which the samples are divided

void divide_by_common_divisor(std::vector<Index>& shares) {
  Index divisor = 0;
  for (const Index share : shares) divisor = std::gcd(divisor, share);
  for (Index& share : shares) share /= divisor;
}

/// The weights times `factor` if these are integers, up to rounding, with a sum of at most
/// `finest`; otherwise empty.
std::vector<Index> integers(std::span<const double> weights, double factor) {
  constexpr double rounding = 1e-12;
  std::vector<Index> shares;
  Index sum = 0;
  for (const double weight : weights) {
    const double scaled = weight * factor;
    if (!(scaled <= static_cast<double>(finest))) return {};
    const double whole = std::round(scaled);
    if (whole < 1 || std::abs(scaled - whole) > rounding * whole) return {};
    shares.push_back(static_cast<Index>(whole));
    sum += shares.back();
  }
  return sum <= finest ? shares : std::vector<Index>{};
}

/// Divides `finest` parts in the proportion of the weights, by the method of largest remainders.
std::vector<Index> rounded(std::span<const double> weights) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  std::vector<Index> shares;
  std::vector<double> remainders;
  for (const double weight : weights) {
    const double exact = weight / (sum / static_cast<double>(finest));  // a product could be fused
    shares.push_back(std::max<Index>(1, static_cast<Index>(std::floor(exact))));
    remainders.push_back(exact - static_cast<double>(shares.back()));
  }
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return remainders[i]; });
  Index left = finest - std::accumulate(shares.begin(), shares.end(), Index{0});
  for (std::size_t i = 0; left > 0; ++i, --left) ++shares[order[i % order.size()]];
  return shares;
}

}  // namespace

std::vector<Index> shares_of(std::span<const double> weights) {
  KZERO_EXPECT(!weights.empty());
  std::vector<Index> shares;
  double factor = 1;
  for (int power = 0; power <= 6 && shares.empty(); ++power, factor *= 10)
    shares = integers(weights, factor);
  if (shares.empty()) shares = rounded(weights);
  divide_by_common_divisor(shares);
  return shares;
}

BlendOrder::BlendOrder(std::vector<Index> shares) : shares_(std::move(shares)) {
  KZERO_EXPECT(!shares_.empty() && shares_.size() <= 256);
  const Index period = std::accumulate(shares_.begin(), shares_.end(), Index{0});
  source_.resize(static_cast<std::size_t>(period));
  sample_.resize(static_cast<std::size_t>(period));
  std::vector<Index> given(shares_.size(), 0);
  for (std::size_t i = 0; i < source_.size(); ++i) {
    const Index source = next_source(static_cast<Index>(i), given);
    source_[i] = static_cast<std::uint8_t>(source);
    sample_[i] = static_cast<std::uint32_t>(given[source]++);
  }
  KZERO_EXPECT(given == shares_);
}

/// The source of the sample at a position of the period; `given` counts each source's samples
/// before it. Let there be m sources, share s of a period P, and n = position + 1. A source is due
/// once n s / P exceeds its count by 1 / (2m - 2). Of the sources that are due, the one whose
/// excess will first reach 1 - 1 / (2m - 2) is chosen. All terms are multiplied by P and by 2m - 2,
/// so that they are integers.
Index BlendOrder::next_source(Index position, const std::vector<Index>& given) const {
  const auto sources = static_cast<Index>(shares_.size());
  const Index period = this->period(), twice = 2 * sources - 2;
  if (sources == 1) return 0;
  Index chosen = -1, min_until = 0, share_of_chosen = 1;
  for (Index i = 0; i < sources; ++i) {
    const Index share = shares_[i];
    const Index excess = twice * ((position + 1) * share - given[i] * period);
    if (excess < period) continue;
    const Index until = period * (twice - 1) - excess;  // divided by share: the time that is left
    if (chosen < 0 || until * share_of_chosen < min_until * share) {
      chosen = i;
      min_until = until;
      share_of_chosen = share;
    }
  }
  KZERO_EXPECT(chosen >= 0);
  return chosen;
}

BlendOrder::Place BlendOrder::operator()(Index sample) const {
  const Index at = sample % period();
  const Index source = source_[at];
  return {source, sample / period() * shares_[source] + Index{sample_[at]}};
}

Index BlendOrder::count(Index source, Index samples) const {
  const auto rest = static_cast<std::ptrdiff_t>(samples % period());
  return samples / period() * shares_[source] +
         std::count(source_.begin(), source_.begin() + rest, static_cast<std::uint8_t>(source));
}

}  // namespace kzero::data
