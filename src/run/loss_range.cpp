#include "run/loss_range.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kzero::run {

namespace {

using checkpoint::LossRecord;

constexpr Index least_losses = 8, window = 16;
constexpr double changes_above = 5;

double moved(double mean, double value, Index count) {
  return mean + (value - mean) / static_cast<double>(std::min(count, window));
}

/// Updates the means with a loss within the range.
void include(double loss, LossRecord& record) {
  const Index count = ++record.counted;
  if (count == 1) {
    record.mean = record.lowest = loss;
  } else {
    record.change = moved(record.change, std::abs(loss - record.included), count - 1);
    record.mean = moved(record.mean, loss, count);
    record.lowest = std::min(record.lowest, record.mean);
  }
  record.included = loss;
}

}  // namespace

LossRange::LossRange(const std::optional<LossRecord>& from) : record_(from) {}

double LossRange::limit() const {
  if (!record_ || record_->counted < least_losses) return std::numeric_limits<double>::infinity();
  return record_->lowest + changes_above * record_->change;
}

void LossRange::add(Index step, double loss) {
  const bool has_left =
      record_ && record_->counted >= least_losses && record_->sane_step < step - 1;
  const bool is_within = std::isfinite(loss) && loss <= (has_left ? record_->mean : limit());
  if (!record_) record_ = LossRecord{};
  record_->last = loss;
  if (!is_within) return;
  include(loss, *record_);
  record_->sane_step = step;
}

void LossRange::add_without_loss(Index step) {
  const bool is_within = !record_ || record_->sane_step == step - 1;
  if (!record_) record_ = LossRecord{};
  if (is_within) record_->sane_step = step;
}

}  // namespace kzero::run
