// The command line: dispatches to the subcommands, and turns every failure into one message and one
// exit code.
#pragma once

#include "base/error.hpp"

namespace kzero::app {

/// Parses the command line, runs the subcommand and reports errors. Never throws. Ranks that fail
/// alone abort the launch, so that none hangs.
ExitCode main(int argc, char** argv);

}  // namespace kzero::app
