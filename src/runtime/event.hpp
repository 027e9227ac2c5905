// Events that order device streams without the host waiting for them.
#pragma once

#include <memory>

#include "runtime/execution.hpp"

namespace kzero::runtime {

/// A point in a stream. Backends without events wait on the host where the point is recorded, which
/// gives the same order without the overlap.
class Event {
 public:
  Event();
  ~Event();
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;

  /// Records the point after all work enqueued on `stream` so far, replacing an earlier point.
  void record(const Execution& stream);

  /// Makes later work on `stream` wait for the point; without a recorded point it does nothing.
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
