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

/// Answers `kzero __complete WORDS...`, the command that the scripts call; returns false for any
/// other command line. The words are those after `kzero`, up to the one that is completed. Prints
/// the candidates for it, one a line: a candidate, a tab, and its description or nothing. The shell
/// drops those that do not begin as the word does. One line that begins with a colon means files: a
/// colon, the end of their names, a tab, and the part of the word before the file's name. bash
/// splits a word at '='; candidates are then for its last part.
bool answers_shell(const CLI::App& cli, int argc, const char* const* argv);

}  // namespace kzero::app
