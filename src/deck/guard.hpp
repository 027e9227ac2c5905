// Checks that the TOML parser lacks or does badly: a text is plain and not too large, everything
// outside of strings and comments is ASCII, and no key has so many parts that freeing its tables
// would overflow the stack.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kzero::deck {

struct Refusal {
  std::size_t offset;  // bytes from the start of the text
  std::string reason;
};

/// Returns the first reason why this text cannot be a deck or an override, if there is one.
/// Allowed: UTF-8 without control characters other than tab and line ends, at most 256 KiB.
std::optional<Refusal> find_bad_text(std::string_view text);

/// Returns the first reason not to parse a text that find_bad_text() allows, if there is one.
/// Allowed: ASCII outside of strings and comments, and dotted keys of at most 32 parts.
std::optional<Refusal> find_bad_structure(std::string_view text);

}  // namespace kzero::deck
