#include "metrics/meters.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "base/error.hpp"

namespace kzero::metrics {

void Throughput::fill(StepRecord& record) const {
  record.tokens_per_second =
      record.seconds > 0 ? static_cast<double>(record.tokens) / record.seconds : 0;
  record.mfu =
      flops_per_second > 0 ? record.tokens_per_second * flops_per_token / flops_per_second : 0;
}

void MovingMedian::add(double value) { values_[added_++ % values_.size()] = value; }

double MovingMedian::value() const {
  const std::size_t count = std::min(added_, values_.size());
  if (count == 0) return 0;
  auto sorted = values_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count));
  return *middle;
}

void SteadyPace::add(double seconds) {
  median_.add(seconds);
  added_ = std::min(added_ + 1, reach);
  mean_ += (median_.value() - mean_) / added_;
}

double StepWork::of(Index step) const { return between(step, step + 1); }

double StepWork::between(Index first, Index end) const {
  double work = phases_.empty() ? static_cast<double>(std::max<Index>(0, end - first)) : 0;
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    const Index begin = std::max(first, phases_[i].first_step);
    const Index last = i + 1 < phases_.size() ? std::min(end, phases_[i + 1].first_step) : end;
    const auto steps = static_cast<double>(std::max<Index>(0, last - begin));
    work += steps * static_cast<double>(phases_[i].tokens) /
            static_cast<double>(phases_.front().tokens);
  }
  return work;
}

void StepMeans::add(const StepRecord& record) {
  tokens_ += record.tokens;
  seconds_ += record.seconds;
  mfu_seconds_ += record.mfu * record.seconds;
  if (record.skipped) return;
  loss_sum_ += record.loss;
  ++losses_;
}

double StepMeans::loss() const {
  return losses_ > 0 ? loss_sum_ / static_cast<double>(losses_)
                     : std::numeric_limits<double>::quiet_NaN();
}

double StepMeans::tokens_per_second() const {
  return seconds_ > 0 ? static_cast<double>(tokens_) / seconds_ : 0;
}

double StepMeans::mfu() const { return seconds_ > 0 ? mfu_seconds_ / seconds_ : 0; }

Index resident_peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    Index kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  fail(ExitCode::other, "/proc/self/status has no VmHWM: the resident memory is not known");
}

}  // namespace kzero::metrics
