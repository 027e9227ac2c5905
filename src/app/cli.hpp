// The command line: calls the subcommands, and turns every failure into one message and one exit
// code.
#pragma once

#include "base/error.hpp"

namespace kzero::app {

/// Parses the command line, runs the subcommand and reports errors. Never throws. A rank that fails
/// alone aborts the launch, so that no rank hangs.
ExitCode main(int argc, char** argv);

}  // namespace kzero::app
