#include "optim/loss_scaler.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace kzero::optim {

LossScaler::LossScaler(Dtype precision, const deck::Optimizer& o)
    : dynamic_(precision == Dtype::fp16),
      scale_(dynamic_ ? o.loss_scale : 1),
      window_(o.loss_scale_window),
      max_skipped_(o.max_skipped) {}

void LossScaler::update(bool finite) {
  if (finite) {
    skipped_in_a_row_ = spikes_in_a_row_ = 0;
    if (++good_steps_ >= window_ && dynamic_) {
      scale_ = std::min(scale_ * 2, 0x1.0p24);
      good_steps_ = 0;
    }
    return;
  }
  ++skipped_;
  ++skipped_in_a_row_;
  good_steps_ = 0;
  if (dynamic_) scale_ = std::max(scale_ / 2, 0x1.0p-24);
}

void LossScaler::leave_out_spike() {
  ++skipped_;
  ++skipped_in_a_row_;
  ++spikes_in_a_row_;
}

void LossScaler::require_progress() const {
  KZERO_REQUIRE(spikes_in_a_row_ == 0 || skipped_in_a_row_ < max_skipped_, ExitCode::diverged,
                "{} steps in a row were skipped (optimizer.max_skipped = {}), {} of them because "
                "their gradient norm was beyond optimizer.skip_above; the norms have reached "
                "another level: a lower optimizer.lr or a higher optimizer.skip_above may help",
                skipped_in_a_row_, max_skipped_, spikes_in_a_row_);
  KZERO_REQUIRE(skipped_in_a_row_ < max_skipped_, ExitCode::diverged,
                "the gradients were not finite in {} steps in a row (optimizer.max_skipped = {}, "
                "loss scale now {}); "
                "a lower optimizer.lr or optimizer.clip, or precision bf16, may help",
                skipped_in_a_row_, max_skipped_, scale_);
}

void LossScaler::require_good_end() const {
  const Index not_finite = skipped_in_a_row_ - spikes_in_a_row_;
  KZERO_REQUIRE(not_finite <= (dynamic_ ? 1 : 0), ExitCode::diverged,
                "the last {} steps were skipped, as their gradients were not finite: the training "
                "ends with the weights from before them; a lower optimizer.lr or optimizer.clip, "
                "or precision bf16, may help from an earlier checkpoint (move later ones away)",
                not_finite);
}

void LossScaler::restore(double scale, Index good_steps, Index skipped, Index skipped_in_a_row,
                         Index spikes_in_a_row) {
  if (dynamic_) scale_ = scale;
  good_steps_ = good_steps;
  skipped_ = skipped;
  skipped_in_a_row_ = skipped_in_a_row;
  spikes_in_a_row_ = spikes_in_a_row;
}

}  // namespace kzero::optim
