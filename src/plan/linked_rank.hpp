// One rank of a planned step with its link: the time on each, what the rank waits for, and
// optionally the spans of a time line.
#pragma once

#include <string_view>
#include <vector>

#include "base/timeline.hpp"
#include "plan/time.hpp"

namespace kzero::plan {

class LinkedRank {
 public:
  /// in_flight: messages move while the rank computes. Spans are appended to `spans` unless it is
  /// null.
  LinkedRank(bool in_flight, std::vector<SpanRecord>* spans)
      : in_flight_(in_flight), spans_(spans) {}

  double now() const { return now_; }
  const Waits& waits() const { return waits_; }

  void work(double seconds, std::string_view what, Index unit);

  /// Messages that block the rank whatever else is in flight.
  void block(double seconds, Cause cause);

  void wait(double until, Cause cause);

  /// Begins messages and returns when they arrive. The link carries one message at a time.
  double begin(double seconds, Cause cause, std::string_view what, Index unit);

  /// Repeats the time and the waiting since `since` this many times, without spans.
  struct Mark {
    double now;
    Waits waits;
  };
  Mark mark() const { return {now_, waits_}; }
  void repeat(const Mark& since, double times);

  /// Records spans from now on.
  void record(std::vector<SpanRecord>* spans) { spans_ = spans; }

 private:
  void add_span(bool on_link, SpanKind kind, double begin, double end, std::string_view what,
                Index unit);

  bool in_flight_;
  std::vector<SpanRecord>* spans_;
  double now_ = 0, link_ = 0;
  Waits waits_;
};

}  // namespace kzero::plan
