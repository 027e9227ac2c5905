// The problems of a deck and their locations: collected, sorted by location and shown together.
// Independent of TOML and of the keys.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
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

// Converts between positions of a TOML parser (line and column in characters), bytes of the text,
// and the locations that messages show. It is independent of TOML.

class Locator {
 public:
  /// Both must outlive the locator. `text` is UTF-8; a byte order mark is not part of line 1.
  Locator(const std::string& name, std::string_view text);

  /// Returns the byte at which the character starts; the end of the line or of the text if the
  /// column is beyond it. Lines and columns count from 1.
  std::size_t offset(std::size_t line, std::size_t column) const;

  SourceLocation place(std::size_t offset) const;

  /// Returns the byte at which the line that contains `offset` starts.
  std::size_t line_start(std::size_t offset) const;

  /// Returns that line without leading spaces and without its line end.
  std::string_view line_at(std::size_t offset) const;

  std::string_view text() const { return text_; }

 private:
  const std::string& name_;
  std::string_view text_;
  std::vector<std::size_t> lines_;  // where each line starts
};

}  // namespace kzero::deck
