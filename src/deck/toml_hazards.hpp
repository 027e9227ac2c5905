// Finds text that the TOML parser must not see. toml++ 3.3.0 tests every character outside of
// strings and comments for being white space, and that test has undefined behaviour for many
// characters that are not ASCII. It has no limit on the parts of a dotted key. Each part is a
// table, tables are freed recursively, and a key of 130 kB overflows the stack.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kzero::deck {

struct TomlHazard {
  std::size_t offset;  // bytes from the start of the text
  std::string reason;
};

/// Returns the first hazard in a UTF-8 text: a character that is not ASCII outside of strings and
/// comments, or a dotted key of more than 32 parts.
std::optional<TomlHazard> find_toml_hazard(std::string_view text);

}  // namespace kzero::deck
