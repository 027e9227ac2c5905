// Finds text that the TOML parser must not see. toml++ 3.3.0 tests every character outside of
// strings and comments for being white space, and that test has undefined behaviour for many
// characters that are not ASCII. It has no limit on the parts of a dotted key. Each part is a
// table, tables are freed recursively, and a key of 130 kB overflows the stack.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "deck/problem.hpp"
#include "deck/toml.hpp"

namespace kzero::deck {

struct TomlHazard {
  std::size_t offset;  // bytes from the start of the text
  std::string reason;
};

/// Returns the first hazard in a UTF-8 text: a character that is not ASCII outside of strings and
/// comments, or a dotted key of more than 32 parts.
std::optional<TomlHazard> find_toml_hazard(std::string_view text);

// Rewrites the TOML parser's errors in kzero's words, and locates them where a reader looks.

/// A number as it is written.
struct WrittenNumber {
  std::size_t offset;  // bytes from the start of the text
  std::size_t bytes;
};

/// Returns the number that does not fit 64 bits, if the parser refused the text because of one.
std::optional<WrittenNumber> number_out_of_range(const toml::parse_error& error,
                                                 const Locator& locator);

/// Converts the parser's error to a problem. `locator` has the text that was parsed.
Problem syntax_problem(const toml::parse_error& error, const Locator& locator);

}  // namespace kzero::deck
