#include "deck/guard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace kzero::deck {

namespace {

constexpr std::size_t longest_text = std::size_t{256} << 10;
constexpr std::size_t longest_line = std::size_t{32} << 10;
constexpr int deepest_nesting = 32;
constexpr int longest_number =
    62;  // digits of 0b...: the parser multiplies without overflow checks

/// Returns the bytes of the UTF-8 character at `at`, 0 if there is none.
std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const std::uint32_t first = byte(at);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  std::uint32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return 0;
    code = code << 6 | (byte(at + i) & 0x3FU);
  }
  const bool is_overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  return is_overlong || is_surrogate || code > 0x10FFFF ? 0 : length;
}

std::optional<Refusal> find_bad_character(std::string_view text) {
  std::size_t line = 0;  // start of the current line
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\n') line = at + 1;
    if (at > line + longest_line) {
      return Refusal{at, fmt::format("a line has at most {} bytes; break the list", longest_line)};
    }
    const auto byte = static_cast<unsigned char>(text[at]);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F) {
      return Refusal{at, fmt::format("control character 0x{:02x}; a deck is plain text", byte)};
    }
    const std::size_t length = character_length(text, at);
    if (length == 0) {
      return Refusal{at, fmt::format("byte 0x{:02x} is not UTF-8; a deck is plain text", byte)};
    }
    at += length;
  }
  return std::nullopt;
}

/// The end of the string that starts with the quote at `at`; a string that is not closed ends with
/// its line or with the text.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string triple(3, quote);
  const bool is_long = text.substr(at, 3) == triple;
  at += is_long ? 3 : 1;
  while (at < text.size()) {
    if (is_long && text.substr(at, 3) == triple) {
      at += 3;
      for (int extra = 0; extra < 2 && at < text.size() && text[at] == quote; ++extra) ++at;
      return at;
    }
    if (!is_long && (text[at] == quote || text[at] == '\n')) return at + 1;
    at += text[at] == '\\' && quote == '"' && text.substr(at + 1, 1) != "\n" ? 2 : 1;
  }
  return text.size();
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::optional<Refusal> find_deep_nesting(std::string_view text) {
  int open = 0;
  int dots = 0;
  std::size_t word = 0;  // start of the current word
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (!is_word(c)) word = at + 1;
    if (text.substr(word, 2) == "0b" && at - word > longest_number) {
      return Refusal{word, "binary number that is too long"};
    }
    if (c == '"' || c == '\'') {
      at = end_of_string(text, at);
      word = at;
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '[' || c == '{') ++open;
    if (c == ']' || c == '}') --open;
    if (c == '\n' || c == ',' || c == '=' || c == '[' || c == '{') dots = 0;
    if (c == '.') ++dots;
    if (open > deepest_nesting || dots > deepest_nesting) {
      return Refusal{at, fmt::format("nesting deeper than {}", deepest_nesting)};
    }
    ++at;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> find_refusal(std::string_view text) {
  if (text.size() > longest_text) {
    return Refusal{0,
                   fmt::format("{} bytes; a deck has at most {} (many data files: use a pattern)",
                               text.size(), longest_text)};
  }
  if (auto refusal = find_bad_character(text)) return refusal;
  return find_deep_nesting(text);
}

}  // namespace kzero::deck
