// Dynamic loss scaling for fp16 (Micikevicius et al., arXiv 1710.03740). If gradients overflow, the
// scale is halved and the step is skipped. After a window of good steps the scale is doubled. Other
// precisions keep scale 1 and also skip steps whose gradients are not finite.
#pragma once

#include "deck/config.hpp"

namespace kzero::optim {

class LossScaler {
 public:
  LossScaler(Dtype precision, const deck::Optimizer& optimizer);

  double scale() const { return scale_; }
  Index good_steps() const { return good_steps_; }  // since the scale last changed
  Index skipped_in_a_row() const { return skipped_in_a_row_; }
  Index skipped() const { return skipped_; }  // in total

  /// Records a step.
  void update(bool finite);

  /// Records a step that was skipped because it had nothing to compute. It counts in skipped(), but
  /// not towards optimizer.max_skipped.
  void leave_out() { ++skipped_; }

  /// Records a step with finite gradients that was skipped because of their norm. It counts towards
  /// optimizer.max_skipped, and leaves the loss scale alone.
  void leave_out_spike();

  /// The spikes among the skipped_in_a_row() steps.
  Index spikes_in_a_row() const { return spikes_in_a_row_; }

  /// Throws Error(diverged) after optimizer.max_skipped skipped steps in a row.
  void require_progress() const;

  /// Throws Error(diverged) if training ends on steps without finite gradients. In fp16 one such
  /// step may be the loss scale adapting. Spikes are exempt, because the weights have a finite
  /// loss.
  void require_good_end() const;

  /// Restores a checkpoint's values. Precisions other than fp16 keep scale 1.
  void restore(double scale, Index good_steps, Index skipped, Index skipped_in_a_row,
               Index spikes_in_a_row = 0);

 private:
  bool dynamic_;
  double scale_;
  Index window_;
  Index max_skipped_;
  Index good_steps_ = 0;
  Index skipped_in_a_row_ = 0;
  Index spikes_in_a_row_ = 0;
  Index skipped_ = 0;
};

}  // namespace kzero::optim
