// Failure of one rank while others may wait for it: it reports the error and ends the launch at
// once.
#pragma once

#include <string>

#include "base/error.hpp"
#include "grid/group.hpp"

namespace kzero::train {

struct Failure {
  std::string text;
  ExitCode code = ExitCode::other;
};

/// Describes the exception being handled to the user.
Failure current_failure();

/// Prints the failure with this rank's number and host, and ends every rank of the launch with its
/// code. Returns only if MPI is not initialized, when no rank can be waiting.
void end_launch(const Failure& failure);

/// Calls f(), which works on objects whose destructors may need the other ranks. An AgreedError
/// passes through: every rank throws it. Any other exception is this rank's alone, and ends the
/// launch while those objects live: unwinding them, or finalizing MPI, would wait for ranks that
/// wait for this one.
template <class F>
ExitCode ending_launch_on_failure(F&& f) {
  try {
    return f();
  } catch (const grid::AgreedError&) {
    throw;
  } catch (...) {
    end_launch(current_failure());
    throw;
  }
}

}  // namespace kzero::train
