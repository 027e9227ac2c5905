// Ends a launch in which a rank has waited too long, or no longer hears another node.
#pragma once

#include <chrono>

#include "base/wait.hpp"
#include "grid/nodes.hpp"
#include "runtime/heartbeat.hpp"

namespace kzero::comm {

/// Reports on standard error which collective of which step does not complete and for whom this
/// rank waits, with that rank's node. Gives others the time to report the same, and ends the
/// launch. `rank` is this rank's number. Does not return.
[[noreturn]] void give_up(const Wait& wait, std::chrono::duration<double> waited, int rank,
                          const grid::Nodes& nodes);

/// Reports on standard error which nodes are silent, and ends the launch; does not return then. A
/// node that was never heard is only reported.
void heed(const runtime::Silence& silence, int rank);

}  // namespace kzero::comm
