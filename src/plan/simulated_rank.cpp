#include "plan/simulated_rank.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kzero::plan {

namespace {

std::int64_t nanoseconds(double seconds) { return std::llround(1e9 * seconds); }

}  // namespace

void SimulatedRank::work(double seconds, std::string_view what, Index unit) {
  add_span(0, SpanKind::phase, now_, now_ + seconds, what, unit);
  now_ += seconds;
}

void SimulatedRank::block(double seconds, Cause cause) { wait(now_ + seconds, cause); }

void SimulatedRank::wait(double until, Cause cause) {
  if (until <= now_) return;
  add_span(0, SpanKind::wait, now_, until, name_of(cause), -1);
  waits_[cause] += until - now_;
  now_ = until;
}

double SimulatedRank::begin(const LinkUse& use, const Message& message) {
  double& stream = streams_[static_cast<std::size_t>(message.stream)];
  double begin = std::max({now_, stream, message.after});
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const auto& [busy, end] = use.uses[i];
    if (busy > 0) begin = std::max(begin, links_[i] - (end - busy));
  }
  stream = begin + use.seconds;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const auto& [busy, end] = use.uses[i];
    if (busy == 0) continue;
    links_[i] = begin + end;
    add_span(i + 1, SpanKind::message, links_[i] - busy, links_[i], message.name, message.unit);
  }
  const double arrival = stream;
  if (!in_flight_ && message.stream != Stream::copies) wait(arrival, message.cause);
  return arrival;
}

void SimulatedRank::repeat(const Mark& since, double times) {
  const double seconds = times * (now_ - since.now);
  for (const Cause cause : all_causes)
    waits_[cause] += times * (waits_[cause] - since.waits[cause]);
  now_ += seconds;
  for (double& free : streams_) free += seconds;
  for (double& free : links_) free += seconds;
}

void SimulatedRank::add_span(std::size_t lane, SpanKind kind, double begin, double end,
                             std::string_view what, Index unit) {
  if (spans_ == nullptr || end <= begin) return;
  SpanRecord& span = spans_->emplace_back();
  span.begin = nanoseconds(begin);
  // Spans are a nanosecond apart. Otherwise they would seem to nest where a reader rounds.
  span.end = std::max(nanoseconds(end) - 1, span.begin + 1);
  span.lane = static_cast<std::uint8_t>(lane);
  span.kind = kind;
  const SpanName name = unit < 0 ? SpanName("{}", what) : SpanName("{} of unit {}", what, unit);
  std::strncpy(span.name, name.c_str(), SpanName::max_bytes);
}

}  // namespace kzero::plan
