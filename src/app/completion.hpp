// Shell completion. `kzero completion SHELL` prints a short script for the shell; on every tab that
// script asks the hidden command `kzero __complete`, which knows the commands, options and keys.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <string>

#include "base/error.hpp"

namespace kzero::app {

/// Adds the subcommand that prints a script. The script calls the program as `program`, the name
/// with which this process was started.
void add_completion(CLI::App& cli, const std::string& program, std::function<ExitCode()>& chosen);

/// Answers `kzero __complete WORDS...`, the command that the scripts call, with the candidates for
/// the last word (completions() in completion.cpp). Returns false for any other command line.
bool answers_shell(const CLI::App& cli, int argc, const char* const* argv);

}  // namespace kzero::app
