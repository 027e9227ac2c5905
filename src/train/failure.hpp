// A rank that fails while others may wait for it: it says so and ends the launch at once.
#pragma once

#include <string>

#include "base/error.hpp"
#include "grid/group.hpp"

namespace kzero::train {

struct Failure {
  std::string text;
  ExitCode code = ExitCode::other;
};

/// What the exception that is being handled means to the user.
Failure current_failure();

/// Prints the failure with this rank's number and host, and ends every rank of the launch with its
/// code. Returns only where MPI is not up, so that no rank can be waiting.
void end_launch(const Failure& failure);

/// Calls f(), which works on objects whose destructors may need the other ranks. An AgreedError
/// passes through: every rank throws it. Whatever else f throws is this rank's alone, and ends the
/// launch while those objects live: unwinding them, or finalising MPI, would wait for ranks that
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
