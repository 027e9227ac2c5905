// What a rank does when it has waited for others too long.
#pragma once

#include <chrono>

#include "base/wait.hpp"

namespace kzero::train {

/// Says on standard error which exchange of which step does not end and for whom this rank waits,
/// gives others the time to say the same, and ends the launch. Does not return.
[[noreturn]] void give_up(const Wait& wait, std::chrono::duration<double> waited, int rank);

}  // namespace kzero::train
