// Tracks the normal range of a training's loss, names the newest checkpoint from before the loss
// left it, and the shell command that returns to it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "checkpoint/format/records.hpp"

namespace kzero::run {

/// The limit of the range is the lowest running mean of the losses plus five times the running mean
/// of the distance between successive losses. Both means cover about 16 steps. They exclude losses
/// beyond the range, so the range does not follow a loss that rises for good. Once a loss is beyond
/// the range, the next loss within it is the first at or below the running mean. This rule is
/// needed early in a training, where the losses of a model that has lost everything it learned may
/// be only just above the range. The first 8 finite losses are within the range. All ranks have the
/// same losses, so all agree.
class LossRange {
 public:
  /// Continues from the record of a checkpoint, or starts empty.
  explicit LossRange(const std::optional<checkpoint::LossRecord>& from = {});

  /// Adds the loss of a step. Steps are numbered from 0.
  void add(Index step, double loss);

  /// Adds a step without a loss. If the step before was within the range, so is this one.
  void add_without_loss(Index step);

  /// Returns the largest loss within the range now; infinite while there are too few losses.
  double limit() const;

  /// Returns the record to save in a checkpoint; nullopt before the first loss.
  const std::optional<checkpoint::LossRecord>& record() const { return record_; }

 private:
  std::optional<checkpoint::LossRecord> record_;
};

/// Returns whether the loss of the last of `steps_done` steps was beyond its range.
bool has_left_range(const LossRange& losses, Index steps_done);

/// Returns one line for a run that has done `steps_done` steps: where the loss left its range (if
/// it did), the newest sane checkpoint, and the shell command that moves later checkpoints away.
/// Empty if `folder` is empty or no loss is recorded. Throws Error(files) if the folder cannot be
/// listed.
std::string return_advice(const std::filesystem::path& folder, Index steps_done,
                          const LossRange& losses);

/// Quotes a path for a shell if necessary.
std::string shell_word(const std::filesystem::path& path);

}  // namespace kzero::run
