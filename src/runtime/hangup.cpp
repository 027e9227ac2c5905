#include "runtime/hangup.hpp"

#include <csignal>

namespace kzero::runtime {

namespace {

bool was_ignored = false;

/// Not instrumented, because sanitizers may not have started yet.
__attribute__((no_sanitize("address", "thread", "undefined"))) void look_at_hangup() {
  struct sigaction action {};
  sigaction(SIGHUP, nullptr, &action);
  was_ignored = action.sa_handler == SIG_IGN;
}

/// The dynamic loader calls the functions in this section of a program before the constructors of
/// its shared libraries.
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)() = look_at_hangup;

}  // namespace

bool started_without_hangup() { return was_ignored; }

}  // namespace kzero::runtime
