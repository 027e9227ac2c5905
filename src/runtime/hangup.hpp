// Whether the process was started with SIGHUP ignored, as nohup does. UCX, a library used by MPI,
// replaces that setting by its own handler before main begins.
#pragma once

namespace kzero::runtime {

/// Returns whether SIGHUP was ignored before any library could change that.
bool started_without_hangup();

}  // namespace kzero::runtime
