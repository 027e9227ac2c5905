// Completion for shells, made of the commands, options and keys that there are.
#pragma once

#include <CLI/App.hpp>
#include <functional>

#include "base/error.hpp"

namespace kzero::app {

/// Adds the subcommand, which chooses to print a script: for bash, completing commands, options and
/// decks, and behind a deck its keys and their values.
void add_completion(CLI::App& cli, std::function<ExitCode()>& chosen);

}  // namespace kzero::app
