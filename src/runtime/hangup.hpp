// Whether the process was started with SIGHUP ignored, as nohup does. UCX, a library of MPI, puts a
// handler of its own in the place of that setting before main begins.
#pragma once

namespace kzero::runtime {

/// Returns whether SIGHUP was ignored before any library could change that.
bool started_without_hangup();

}  // namespace kzero::runtime
