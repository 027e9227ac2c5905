// Generates the manual page, kzero(1), from the existing commands and options.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "app/command_table.hpp"
#include "base/error.hpp"

namespace kzero::app {

/// Adds the subcommand, which prints the page in roff: kzero man | man -l -
void add_man(CLI::App& cli, std::function<ExitCode()>& chosen);

/// Returns the page of these commands; the first is the program itself.
std::string man_page(const std::vector<Command>& commands);

/// The meaning of each exit code, in the words of the README.
std::vector<std::pair<ExitCode, std::string>> exit_code_meanings();

}  // namespace kzero::app
