#include "plan/linked_rank.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kzero::plan {

namespace {

std::int64_t nanoseconds(double seconds) { return std::llround(1e9 * seconds); }

}  // namespace

void LinkedRank::work(double seconds, std::string_view what, Index unit) {
  add_span(false, SpanKind::phase, now_, now_ + seconds, what, unit);
  now_ += seconds;
}

void LinkedRank::block(double seconds, Cause cause) { wait(now_ + seconds, cause); }

void LinkedRank::wait(double until, Cause cause) {
  if (until <= now_) return;
  add_span(false, SpanKind::wait, now_, until, name_of(cause), -1);
  waits_[cause] += until - now_;
  now_ = until;
}

double LinkedRank::begin(double seconds, Cause cause, std::string_view what, Index unit) {
  const double begin = std::max(link_, now_);
  link_ = begin + seconds;
  add_span(true, SpanKind::message, begin, link_, what, unit);
  if (!in_flight_) wait(link_, cause);
  return link_;
}

void LinkedRank::repeat(const Mark& since, double times) {
  const double seconds = times * (now_ - since.now);
  for (const Cause cause : all_causes)
    waits_[cause] += times * (waits_[cause] - since.waits[cause]);
  now_ += seconds;
  link_ += seconds;
}

void LinkedRank::add_span(bool on_link, SpanKind kind, double begin, double end,
                          std::string_view what, Index unit) {
  if (spans_ == nullptr || end <= begin) return;
  SpanRecord& span = spans_->emplace_back();
  span.begin = nanoseconds(begin);
  // A nanosecond lies between spans, which would otherwise seem to nest where a reader rounds.
  span.end = std::max(nanoseconds(end) - 1, span.begin + 1);
  span.lane = on_link ? 1 : 0;
  span.kind = kind;
  const SpanName name = unit < 0 ? SpanName("{}", what) : SpanName("{} of unit {}", what, unit);
  std::strncpy(span.name, name.c_str(), SpanName::most);
}

}  // namespace kzero::plan
