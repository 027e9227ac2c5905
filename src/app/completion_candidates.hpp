// Candidates for the last word of a command line that is being typed.
#pragma once

#include <string>
#include <vector>

#include "app/command_table.hpp"

namespace kzero::app {

/// The candidates for the last of `words`, the words after `kzero`. One a line: a candidate, a tab,
/// and its description or nothing. They include those that do not begin as the word does. A single
/// line that begins with a colon means files: a colon, the end of their names, a tab, and the part
/// of the word before the file's name. bash splits a word at '='; candidates are then for its last
/// part.
std::string completions(const std::vector<Command>& commands,
                        const std::vector<std::string>& words);

}  // namespace kzero::app
