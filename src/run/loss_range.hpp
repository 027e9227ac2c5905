// The range of a run's losses. It decides which checkpoints are from before the loss left the
// range.
#pragma once

#include <optional>

#include "checkpoint/format/loss_record.hpp"

namespace kzero::run {

/// A loss is within the range if it exceeds the lowest running mean of the losses by at most five
/// times the running mean of the distance between consecutive losses. Both means are over about 16
/// steps. They leave out losses beyond the range, so that the range does not follow a loss that
/// rises for good. After a loss beyond the range, the next one within it is the first at or below
/// the running mean, because a model that has forgotten everything may have losses just above a
/// young run's range. The first 8 finite losses are within the range. All ranks have the same
/// losses and agree.
class LossRange {
 public:
  /// Continues from a checkpoint's record, or starts anew.
  explicit LossRange(const std::optional<checkpoint::LossRecord>& from = {});

  /// Adds the loss of a step, numbered from 0.
  void add(Index step, double loss);

  /// The largest loss currently within the range. Infinite while there are too few losses.
  double limit() const;

  /// The record for a checkpoint. Empty before the first loss.
  const std::optional<checkpoint::LossRecord>& record() const { return record_; }

 private:
  std::optional<checkpoint::LossRecord> record_;
};

}  // namespace kzero::run
