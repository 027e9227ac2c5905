// The time that a device's stream stands still between two points, without the host waiting.
#pragma once

#include <memory>

#include "runtime/execution.hpp"

namespace kzero::runtime {

/// Adds up the time from begin() to end() as it passes on a stream. On a host, whose streams never
/// stand still behind the host, and on devices without a file of their own it measures nothing.
class StreamTimer {
 public:
  StreamTimer();
  ~StreamTimer();
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

  /// Marks the next point of the stream. Each begin() has its end() on the same stream before the
  /// next.
  void begin(const Execution& stream);
  void end(const Execution& stream);

  /// Returns the seconds of the spans that have passed since the last call. Those whose end has not
  /// been reached count later; never blocks.
  double take_seconds();

 private:
  struct Spans;
  std::unique_ptr<Spans> spans_;
};

}  // namespace kzero::runtime
