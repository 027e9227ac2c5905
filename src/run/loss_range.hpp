// The range of a training's losses: decides which checkpoints are from before the loss left it.
#pragma once

#include <optional>

#include "checkpoint/format/loss_record.hpp"

namespace kzero::run {

/// A loss is within the range if it lies above the lowest running mean of the losses by at most
/// five times the running mean of how far two losses in a row are apart. Both means are over about
/// 16 steps and leave out losses beyond the range, so the range does not follow a loss that rises
/// for good. Once a loss was beyond it, the next one within it is the first at or below the running
/// mean: the losses of a model that has forgotten all may lie close above the range of a young
/// training. The first 8 finite losses are within it. All ranks have the same losses, so all agree.
class LossRange {
 public:
  /// Continues from the record of a checkpoint, or begins anew.
  explicit LossRange(const std::optional<checkpoint::LossRecord>& from = {});

  /// Adds the loss of a step, which has its number from 0.
  void add(Index step, double loss);

  /// The largest loss within the range now; infinite while there are too few.
  double limit() const;

  /// What a checkpoint records now; none before the first loss.
  const std::optional<checkpoint::LossRecord>& record() const { return record_; }

 private:
  std::optional<checkpoint::LossRecord> record_;
};

}  // namespace kzero::run
