#include "optim/spike_rule.hpp"

#include <algorithm>

namespace kzero::optim {

SpikeRule::SpikeRule(const deck::Optimizer& optimizer)
    : factor_(optimizer.skip_above), window_(static_cast<std::size_t>(optimizer.skip_window)) {
  if (!is_on()) return;
  norms_.reserve(window_);
  sorted_.reserve(window_);
}

std::optional<double> SpikeRule::limit() const {
  if (!is_on() || norms_.size() < window_) return std::nullopt;
  return factor_ * median();
}

void SpikeRule::add(double norm) {
  if (!is_on()) return;
  if (norms_.size() == window_) norms_.erase(norms_.begin());
  norms_.push_back(norm);
}

void SpikeRule::restore(std::span<const double> norms, Index skipped) {
  skipped_ = skipped;
  norms_.clear();
  if (is_on()) {
    const auto kept = norms.last(std::min(norms.size(), window_));
    norms_.assign(kept.begin(), kept.end());
  }
}

/// The mean of the two middle norms if their number is even.
double SpikeRule::median() const {
  sorted_.assign(norms_.begin(), norms_.end());
  const auto middle = sorted_.begin() + static_cast<std::ptrdiff_t>(sorted_.size() / 2);
  std::nth_element(sorted_.begin(), middle, sorted_.end());
  if (sorted_.size() % 2 == 1) return *middle;
  return (*std::max_element(sorted_.begin(), middle) + *middle) / 2;
}

}  // namespace kzero::optim
