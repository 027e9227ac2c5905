// What was meant by a command line that cannot be read: every mistake gets its reason and the
// nearest thing that is known.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace kzero::app {

/// One sentence for a command line that `cli` did not accept: a command, option or argument that is
/// not known, or else what the parser says, and where help is.
std::string explain(const CLI::App& cli, const CLI::ParseError& error);

/// Lets an option for an integer be written as "4.0" or "1e3".
CLI::Validator whole_number();

}  // namespace kzero::app
