// Parses a deck's text into locations and values, with limits and error messages. It knows TOML,
// but no keys.
#pragma once

#include <string>
#include <vector>

#include "deck/problem.hpp"
#include "deck/schema.hpp"

namespace kzero::deck {

/// A deck's name in messages and its bytes.
struct Source {
  std::string name;
  std::string text;
};

/// One `name = value` as it was found.
struct Entry {
  std::string name;
  SourceLocation key_location;
  SourceLocation value_location;
  Value value;
  std::string shown;  // the value as written, on one line
};

/// One table of the deck. The entries outside any table are in a section without a name.
struct Section {
  std::string name;  // of a list of tables in another table: "data.blend"
  SourceLocation place;
  std::vector<Entry> entries{};
  Index number = -1;  // of the table in its list, from 0; -1: not in a list
};

/// Reads TOML. Text that is not TOML or nests deeper than 32 becomes a problem; the result then has
/// no sections. A number that does not fit 64 bits becomes an entry without a value, and so does a
/// date. Throws only std::bad_alloc, whatever the bytes.
std::vector<Section> read_document(const Source& source, std::vector<Problem>& problems);

}  // namespace kzero::deck
