// Events that order device streams without the host waiting for them.
#pragma once

#include <memory>

#include "runtime/execution.hpp"

namespace kzero::runtime {

/// A point in a stream. Back ends without events make the host wait when the point is recorded: the
/// order is the same, but nothing overlaps.
class Event {
 public:
  Event();
  ~Event();
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;

  /// Records the point after all work enqueued on `stream` so far, replacing an earlier point.
  void record(const Execution& stream);

  /// Makes later work on `stream` wait for the point. Does nothing if no point was recorded.
  void wait(const Execution& stream) const;

  /// Makes later work on `later` wait for all work enqueued on `earlier` so far.
  void order(const Execution& earlier, const Execution& later) {
    record(earlier);
    wait(later);
  }

  /// Returns whether the point has been reached.
  bool reached() const;

  /// Blocks the host until the point has been reached.
  void synchronize() const;

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace kzero::runtime
