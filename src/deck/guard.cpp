#include "deck/guard.hpp"

#include <fmt/format.h>

#include "base/utf8.hpp"

namespace kzero::deck {

namespace {

constexpr std::size_t longest_text = std::size_t{256} << 10;
// The parser makes a table for each dot of a key, and tables are freed recursively.
constexpr int most_dots = 2048;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F;
}

}  // namespace

std::optional<Refusal> find_refusal(std::string_view text) {
  if (text.size() > longest_text) {
    return Refusal{0,
                   fmt::format("{} bytes; a deck has at most {} (many data files: use a pattern)",
                               text.size(), longest_text)};
  }
  int dots = 0;  // in the current line
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (is_control(text[at])) {
      return Refusal{at, fmt::format("control character 0x{:02x}; a deck is plain text", byte)};
    }
    const std::size_t bytes = first_utf8_character(text.substr(at)).bytes;
    if (bytes == 0) {
      return Refusal{at, fmt::format("byte 0x{:02x} is not UTF-8; a deck is plain text", byte)};
    }
    if (text[at] == '\n') dots = 0;
    if (text[at] == '.' && ++dots > most_dots) {
      return Refusal{at, fmt::format("a line has at most {} dots; break the list", most_dots)};
    }
    at += bytes;
  }
  return std::nullopt;
}

}  // namespace kzero::deck
