// Failure of one rank while others may wait for it: it reports the error and ends the launch at
// once.
#pragma once

#include <string>

#include "base/error.hpp"
#include "grid/group.hpp"
#include "runtime/signals.hpp"

namespace kzero::comm {

struct Failure {
  std::string text;
  ExitCode code = ExitCode::other;
};

/// Describes the exception being handled to the user.
Failure current_failure();

/// Prints one line with this rank's number and host on standard error, and waits, for two seconds
/// at most, until the launcher has read it.
void print_failure(const std::string& text, int rank);

/// Ends every rank of the launch with this code, and this process in any case: within seconds even
/// if the launcher does not answer. The lock of a folder of checkpoints falls silent before.
[[noreturn]] void leave_launch(ExitCode code);

/// Prints the failure with this rank's number and host, and ends every rank of the launch with its
/// code. Returns only if MPI is not initialized, when no rank can be waiting.
void end_launch(const Failure& failure);

/// Calls f(), which works on objects whose destructors may need the other ranks. An AgreedError
/// passes through: every rank throws it. Any other exception is this rank's alone, and ends the
/// launch while those objects live: unwinding them, or finalizing MPI, would wait for ranks that
/// wait for this one. Once the outcome is known, a stop signal or a shutdown that hangs no longer
/// changes the exit code.
template <class F>
ExitCode ending_launch_on_failure(F&& f) {
  try {
    const ExitCode code = f();
    runtime::leave_on_signals(static_cast<int>(code));
    return code;
  } catch (const grid::AgreedError& error) {
    runtime::leave_on_signals(static_cast<int>(error.code()));
    throw;
  } catch (...) {
    end_launch(current_failure());
    throw;
  }
}

}  // namespace kzero::comm
