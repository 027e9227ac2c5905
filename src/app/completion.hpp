// Shell completion, generated from the commands, options and keys that exist.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <string>
#include <vector>

#include "app/command_table.hpp"
#include "base/error.hpp"

namespace kzero::app {

/// Adds the subcommand, which prints a script for a shell. The script completes commands, options
/// and their values, decks, and after a deck its keys and their values.
void add_completion(CLI::App& cli, std::function<ExitCode()>& chosen);

/// The script for each shell. The first command is the program itself.
std::string bash_completion(const std::vector<Command>& commands);
std::string zsh_completion(const std::vector<Command>& commands);
std::string fish_completion(const std::vector<Command>& commands);

/// The kinds of words that can complete a value.
enum class Candidates { none, choices, decks, settings, files };

Candidates candidates_of(const Argument& argument);

/// Escapes single quotes for a text in single quotes, as bash and zsh need it: don't becomes
/// don'\''t.
std::string quoted(const std::string& text);

}  // namespace kzero::app
