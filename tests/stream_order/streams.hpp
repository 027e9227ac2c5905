// Streams as ThreadSanitizer's fibers: what runs on a stream is another thread to it, though the
// host's threads run all of it at once. Only what orders streams on a device orders the fibers:
// launches, events, fences.
#pragma once

#include <cstddef>
#include <functional>

#include "runtime/execution.hpp"

namespace kzero::stream_order {

/// The number of reports so far, each of two accesses to the same memory that nothing orders.
int reports();

/// Runs `work` on the stream behind an instance of the back end, after what is on it already.
void enqueue(const void* instance, const std::function<void()>& work);

}  // namespace kzero::stream_order
