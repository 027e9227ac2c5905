// In place of the events of builds for hosts, with the same order: whoever asks is told what was
// called.
#pragma once

#include <functional>

namespace kzero::tests {

enum class EventCall { record, synchronize };

/// Calls note(call, event) at every call from now on; nothing if it is empty.
void note_event_calls(std::function<void(EventCall, const void* event)> note);

}  // namespace kzero::tests
