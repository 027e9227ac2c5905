// The command line: what kzero is asked to do, and how every failure becomes one message and one
// exit code.
#pragma once

#include "base/error.hpp"

namespace kzero::app {

/// Parses, dispatches, reports. Never throws. Ranks that fail alone abort the launch, so that none
/// hangs.
ExitCode main(int argc, char** argv);

}  // namespace kzero::app
