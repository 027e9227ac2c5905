// The problems of a deck and their locations: collected, sorted by location and shown together.
// Independent of TOML and of the keys.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::deck {

/// The location of a setting; locations order the list of problems.
struct SourceLocation {
  enum class Source { deck, command_line, defaults };

  Source source = Source::defaults;
  Index line = 0;    // from 1; on the command line: which override
  Index column = 0;  // from 1, in characters
  std::string text;  // "deck.toml:3:1"
};

struct Problem {
  SourceLocation place;
  std::string text;
};

/// Throws Error(usage) with one line for each of the first hundred problems, sorted by location,
/// and the number of the others; returns if there are none.
void throw_if_any(std::vector<Problem> problems);

}  // namespace kzero::deck
