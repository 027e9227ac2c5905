// The commands and options of the program, read from the tree that parses them. The manual page and
// the shells' completion are generated from this table.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace kzero::app {

/// An option, or a positional argument.
struct Argument {
  std::vector<std::string> names;  // with their dashes; a positional argument has one name
  std::string text;
  std::string value;                 // name of its value, such as DECK; empty for a flag
  std::string limits;                // condition on its value, such as "INT in [0 - 3]"
  std::string fallback;              // the default, if the option knows it
  std::vector<std::string> choices;  // all possible values; empty: any
  std::vector<std::string> needs;    // other arguments, by name
  std::vector<std::string> excludes;
  bool is_required = false;
  bool is_repeated = false;

  bool takes_value() const { return !value.empty(); }
};

struct Command {
  std::string name;
  std::string text;
  std::vector<Argument> positionals;
  std::vector<Argument> options;
};

/// Names of values that completion knows. Other names, except TEXT, have no candidates.
inline constexpr const char* deck_value = "DECK";          // a file that ends in .toml
inline constexpr const char* setting_value = "KEY=VALUE";  // a key of the deck
inline constexpr const char* text_value = "TEXT";          // treated as a file

/// The program itself comes first, with its name and the options before a command; then its
/// commands in the order in which they were added.
std::vector<Command> command_table(const CLI::App& cli);

}  // namespace kzero::app
