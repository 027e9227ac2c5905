// The commands and options of the program, read from the tree that parses them, for what describes
// them: the manual page and the shells' completion.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace kzero::app {

/// An option, or a positional argument.
struct Argument {
  std::vector<std::string> names;  // with their dashes; of a positional argument its one name
  std::string text;
  std::string value;                 // what its value is called, such as DECK; empty for a flag
  std::string limits;                // what its value must be, such as "INT in [0 - 3]"
  std::string fallback;              // the default, where the option knows it
  std::vector<std::string> choices;  // all values there are; empty: any
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

/// Names of values that completion knows. Other names but TEXT have no candidates.
inline constexpr const char* deck_value = "DECK";          // a file that ends in .toml
inline constexpr const char* setting_value = "KEY=VALUE";  // a key of the deck
inline constexpr const char* text_value = "TEXT";          // taken for a file

/// The program itself first, with its name and the options that it has before a command, then its
/// commands in the order in which they were added.
std::vector<Command> command_table(const CLI::App& cli);

}  // namespace kzero::app
