// Checks that a text is safe for the TOML parser. The parser recurses with the nesting and its time
// grows with the square of a line's length, so both have limits; bytes that are no text are found
// here too.
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

/// The first reason not to parse this text, if there is one. Allowed: UTF-8 without control
/// characters other than tab and line ends, at most 256 KiB, 32 KiB per line, 32 open brackets, 32
/// parts of a dotted key.
std::optional<Refusal> find_refusal(std::string_view text);

}  // namespace kzero::deck
