#include "runtime/event.hpp"

namespace kzero::runtime {

// For hosts and for devices without a file of their own: right on any, without overlap.
struct Event::Handle {};

Event::Event() = default;
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;

void Event::mark(const Execution& queue) { queue.fence("kzero::runtime::event_marked"); }
void Event::hold(const Execution&) const {}
bool Event::reached() const { return true; }
void Event::wait() const {}

int device_count() { return 0; }

}  // namespace kzero::runtime
