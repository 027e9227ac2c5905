// Shell completion, generated from the commands, options and keys that exist.
#pragma once

#include <CLI/App.hpp>
#include <functional>

#include "base/error.hpp"

namespace kzero::app {

/// Adds the subcommand, which prints a script: for bash, completing commands, options and decks,
/// and after a deck its keys and their values.
void add_completion(CLI::App& cli, std::function<ExitCode()>& chosen);

}  // namespace kzero::app
