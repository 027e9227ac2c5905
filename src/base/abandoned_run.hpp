// Whether this process has given its run up. Threads that make the run look alive, such as the one
// that renews the lock of a checkpoint folder, stop then.
#pragma once

namespace kzero {

/// Marks the run as given up, for the rest of this process's life. Call it before any shutdown step
/// that may block: other runs may then take over what this run held.
void abandon_run();

bool run_is_abandoned();

}  // namespace kzero
