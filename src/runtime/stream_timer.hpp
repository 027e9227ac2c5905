// Measures the time that a device's stream is idle between two points, without making the host
// wait.
#pragma once

#include <memory>

#include "runtime/execution.hpp"

namespace kzero::runtime {

/// Adds up the time from begin() to end() as it passes on a stream. Measures nothing on hosts,
/// whose streams run in step with the host, and on devices for which kzero has no source file.
class StreamTimer {
 public:
  StreamTimer();
  ~StreamTimer();
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

  /// Marks the next point of the stream. Each begin() needs an end() on the same stream before the
  /// next begin().
  void begin(const Execution& stream);
  void end(const Execution& stream);

  /// Returns the seconds of the spans that have ended since the last call. Spans that have not
  /// ended are counted by a later call. Never blocks.
  double take_seconds();

 private:
  struct Spans;
  std::unique_ptr<Spans> spans_;
};

}  // namespace kzero::runtime
