#include "run/loss_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "checkpoint/folder/retention.hpp"

namespace kzero::run {

namespace {

using checkpoint::LossRecord;

constexpr Index min_losses = 8, window = 16;
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
  if (!record_ || record_->counted < min_losses) return std::numeric_limits<double>::infinity();
  return record_->lowest + changes_above * record_->change;
}

void LossRange::add(Index step, double loss) {
  const bool has_left = record_ && record_->counted >= min_losses && record_->sane_step < step - 1;
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

namespace {

namespace fs = std::filesystem;

std::string how_the_loss_went(const LossRange& losses, Index steps_done) {
  const auto& record = losses.record();
  return fmt::format(
      "the loss left its range after step {}: in step {} it was {:.6g}, and up to {:.6g} is within "
      "the range. ",
      record->sane_step, steps_done - 1, record->last, losses.limit());
}

/// Returns an unused path in the folder.
fs::path free_name(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  fs::path found = folder / name;
  for (int i = 2; fs::exists(found, ignored); ++i) found = folder / fmt::format("{}_{}", name, i);
  return found;
}

/// Returns the command that moves all checkpoints after `sane` away, including those written later.
/// Empty if there are none now.
std::string command(const fs::path& folder, const fs::path& sane) {
  if (checkpoint::candidates(folder).front() == sane) return "";
  const std::string name = sane.filename().string();
  return fmt::format(
      "mkdir {0} && for c in {1}/step_*[0-9]; do if [ \"${{c##*_}}\" -gt {2} ]; then mv \"$c\" "
      "{0}; "
      "fi; done",
      shell_word(free_name(folder, "after_" + name)), shell_word(folder),
      name.substr(name.find('_') + 1));
}

}  // namespace

bool has_left_range(const LossRange& losses, Index steps_done) {
  return losses.record() && losses.record()->sane_step < steps_done - 1;
}

std::string shell_word(const fs::path& path) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+:,@%=-";
  std::string text = (path.string().starts_with('-') ? "./" : "") + path.string();
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string return_advice(const fs::path& folder, Index steps_done, const LossRange& losses) {
  if (folder.empty() || !losses.record()) return "";
  std::string text =
      has_left_range(losses, steps_done) ? how_the_loss_went(losses, steps_done) : "";
  const auto sane = checkpoint::newest_sane(folder, steps_done, losses.record()->sane_step);
  if (!sane) return text + fmt::format("No checkpoint in {} is from before that", folder.string());
  const std::string back = command(folder, *sane);
  text += fmt::format("{} is the newest checkpoint from before that", sane->string());
  if (back.empty()) return text + "; the next run begins with it";
  return text + fmt::format("; to go back to it: {}", back);
}

}  // namespace kzero::run
