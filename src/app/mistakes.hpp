// Explains command lines that cannot be parsed: every mistake gets its reason and the nearest known
// name.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace kzero::app {

/// Returns one sentence for a command line that `cli` did not accept: an unknown command, option or
/// argument, or otherwise the parser's message, and where to find help.
std::string explain(const CLI::App& cli, const CLI::ParseError& error);

/// Allows an integer option to be written as "4.0" or "1e3".
CLI::Validator whole_number();

/// Accepts finite numbers from `low` to `high`. CLI::Range would accept NaN.
CLI::Validator number_in(double low, double high);

/// Accepts whole numbers from 0 to 2^64 - 1 for an unsigned 64-bit option. Without this check CLI11
/// would convert "-1", 2^64, "010" and an empty text to other numbers.
CLI::Validator unsigned_number();

}  // namespace kzero::app
