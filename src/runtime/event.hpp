// Order between streams of a device without the host waiting for either.
#pragma once

#include <memory>

#include "runtime/execution.hpp"

namespace kzero::runtime {

/// A point in a stream. Backends without events of their own wait on the host where the point is
/// recorded, which is the same order, less the overlap.
class Event {
 public:
  Event();
  ~Event();
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;

  /// The point after all that is enqueued on `stream` so far; forgets an earlier point.
  void record(const Execution& stream);

  /// What is enqueued on `stream` from now on begins once the point is reached. Before record(): at
  /// once.
  void wait(const Execution& stream) const;

  /// What is enqueued on `later` from now on begins after what is enqueued on `earlier` so far.
  void order(const Execution& earlier, const Execution& later) {
    record(earlier);
    wait(later);
  }

  /// Whether the point is reached.
  bool reached() const;

  /// Returns once the point is reached.
  void synchronize() const;

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace kzero::runtime
