// Order between queues of a device without the host waiting for either.
#pragma once

#include <memory>

#include "runtime/execution.hpp"

namespace kzero::runtime {

/// A point in a queue. Backends without events of their own wait on the host where the point is
/// marked, which is the same order, less the overlap.
class Event {
 public:
  Event();
  ~Event();
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;

  /// The point after all that is enqueued on `queue` so far; forgets an earlier point.
  void mark(const Execution& queue);

  /// What is enqueued on `queue` from now on begins once the point is reached. Before mark(): at
  /// once.
  void hold(const Execution& queue) const;

  /// What is enqueued on `later` from now on begins after what is enqueued on `earlier` so far.
  void order(const Execution& earlier, const Execution& later) {
    mark(earlier);
    hold(later);
  }

  /// Whether the point is reached.
  bool reached() const;

  /// Returns once the point is reached.
  void wait() const;

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace kzero::runtime
