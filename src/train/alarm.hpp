// The action of a rank that has waited for others too long.
#pragma once

#include <chrono>

#include "base/wait.hpp"

namespace kzero::train {

/// Reports on standard error which collective of which step does not complete and for whom this
/// rank waits, gives others the time to report the same, and ends the launch. Does not return.
[[noreturn]] void give_up(const Wait& wait, std::chrono::duration<double> waited, int rank);

}  // namespace kzero::train
