// Checks what the TOML parser does not, or not well: that a text is plain and not too large, that
// what is outside of its strings and comments is ASCII, and that no key has so many parts that
// freeing its tables would overflow the stack.
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

/// The first reason why this is no text for a deck or an override, if there is one. Allowed: UTF-8
/// without control characters other than tab and line ends, at most 256 KiB.
std::optional<Refusal> find_bad_text(std::string_view text);

/// The first reason not to parse a text that find_bad_text() allows, if there is one. Allowed:
/// ASCII outside of strings and comments, at most 32 parts of a dotted key.
std::optional<Refusal> find_bad_structure(std::string_view text);

}  // namespace kzero::deck
