// Checks what the TOML parser does not: that a deck is not too large, that it is plain text, and
// that no key has so many parts that freeing its tables would overflow the stack.
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
/// characters other than tab and line ends, at most 256 KiB, at most 2048 dots per line.
std::optional<Refusal> find_refusal(std::string_view text);

}  // namespace kzero::deck
