// Replaces the events of host builds and keeps their order. Reports every call.
#pragma once

#include <functional>

namespace kzero::tests {

enum class EventCall { record, synchronize };

/// Calls note(call, event) on every event call from now on. An empty `note` disables this.
void note_event_calls(std::function<void(EventCall, const void* event)> note);

}  // namespace kzero::tests
