// Whether this process has given its run up. Threads that would keep up the appearance of a living
// run, such as the one that renews the lock of a folder of checkpoints, stop then.
#pragma once

namespace kzero {

/// Marks the run as given up, for the rest of this process's life. Call it before the steps of
/// leaving that may block: other runs may then take over what this one held.
void abandon_run();

bool run_is_abandoned();

}  // namespace kzero
