// Simulates one rank of a planned step and its links: the time on each, what the rank waits for,
// and optionally the spans of a time line.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "base/timeline.hpp"
#include "plan/network.hpp"
#include "plan/time.hpp"

namespace kzero::plan {

/// A rank's sources of messages. Messages of one source leave in the order in which they begin.
/// Over MPI one thread makes all collectives. NCCL has a communicator for sums and one for all
/// others.
enum class Stream { collectives, sums, copies };

/// Messages of a rank.
struct Message {
  Stream stream = Stream::collectives;
  Cause cause = Cause::gathers;
  std::string_view name{};
  Index unit = -1;   // -1: of no unit
  double after = 0;  // the time before which they cannot begin
};

class SimulatedRank {
 public:
  /// in_flight: collectives move while the rank computes; copies to and from the host always do.
  explicit SimulatedRank(bool in_flight) : in_flight_(in_flight) {}

  double now() const { return now_; }

  void work(double seconds, std::string_view what, Index unit);

  /// Messages that block the rank whatever else is in flight.
  void block(double seconds, Cause cause);

  void wait(double until, Cause cause);

  /// Begins messages and returns when they arrive. They begin when their stream and the links they
  /// use are free: a link carries one message at a time.
  double begin(const LinkUse& use, const Message& message);

  /// Repeats the time and the waiting since `since` this many times, without spans.
  struct Mark {
    double now;
    Waits waits;
  };
  Mark mark() const { return {now_, waits_}; }
  void repeat(const Mark& since, double times);

  /// Records spans from now on. Lane 0 is the rank, lanes 1 to 3 are its links.
  void record(std::vector<SpanRecord>* spans) { spans_ = spans; }

 private:
  void add_span(std::size_t lane, SpanKind kind, double begin, double end, std::string_view what,
                Index unit);

  bool in_flight_;
  std::vector<SpanRecord>* spans_ = nullptr;
  double now_ = 0;
  std::array<double, 3> streams_{};               // when each is free
  std::array<double, all_links.size()> links_{};  // when each is free
  Waits waits_;
};

}  // namespace kzero::plan
