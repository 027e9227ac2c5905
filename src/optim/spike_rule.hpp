// Skips steps whose gradient norm is far above those of recent steps (optimizer.skip_above). Such
// spikes in large runs, and batches left out as a remedy, are described by Chowdhery et al.,
// "PaLM", arXiv 2204.02311, section 5.1. The threshold is a multiple of the median, which spikes
// move less than they move a mean and a standard deviation.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "deck/config.hpp"

namespace kzero::optim {

/// The norms of the last applied steps. Every rank has the same, because the norm is the same on
/// all ranks. Allocates only in the constructor and in restore().
class SpikeRule {
 public:
  explicit SpikeRule(const deck::Optimizer& optimizer);

  /// The gradient norm above which the next step is skipped. Empty if the rule is off, or as long
  /// as fewer than optimizer.skip_window steps were applied.
  std::optional<double> limit() const;

  /// Records an applied step, whose norm must be finite.
  void add(double norm);

  /// Counts a step that is skipped because of limit().
  void skip() { ++skipped_; }

  bool is_on() const { return factor_ > 0; }
  Index skipped() const { return skipped_; }

  /// The recorded norms, oldest first: at most optimizer.skip_window.
  const std::vector<double>& norms() const { return norms_; }

  /// Restores a checkpoint's values. Drops the oldest norms if the window is now shorter.
  void restore(std::span<const double> norms, Index skipped);

 private:
  double median() const;

  double factor_;
  std::size_t window_;
  std::vector<double> norms_;
  mutable std::vector<double> sorted_;
  Index skipped_ = 0;
};

}  // namespace kzero::optim
