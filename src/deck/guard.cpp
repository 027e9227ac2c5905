#include "deck/guard.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.hpp"

namespace kzero::deck {

namespace {

constexpr std::size_t longest_text = std::size_t{256} << 10;
constexpr int most_parts =
    32;  // of a dotted key: each is a table, and tables are freed recursively

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F;
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

Refusal not_ascii(std::string_view text, std::size_t at, std::string_view where) {
  const std::string_view character = text.substr(at, first_utf8_character(text.substr(at)).bytes);
  return {at, fmt::format("'{}' {}", character, where)};
}

/// Scans a text. The parser's own test for white space is undefined for much of what is not ASCII.
class StructureScan {
 public:
  explicit StructureScan(std::string_view text)
      : text_(text), at_(text.starts_with("\xEF\xBB\xBF") ? 3 : 0) {}

  std::optional<Refusal> find_refusal() {
    int dots = 0;
    while (at_ < text_.size() && !refusal_) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_string();
        continue;
      }
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      if (!is_ascii(c))
        return not_ascii(text_, at_, R"(is allowed only within quotes ("...") and comments)");
      if (c == '\n' || c == ',' || c == '=' || c == '[' || c == '{') dots = 0;
      if (c == '.' && ++dots >= most_parts)
        return Refusal{at_, fmt::format("a key has at most {} parts", most_parts)};
      ++at_;
    }
    return refusal_;
  }

 private:
  /// Moves to the end of the string that starts here. An unclosed string ends with its line or with
  /// the text.
  void skip_string() {
    const char quote = text_[at_];
    const std::string triple(3, quote);
    const bool is_long = text_.substr(at_, 3) == triple;
    at_ += is_long ? 3 : 1;
    while (at_ < text_.size() && !refusal_) {
      if (is_long && text_.substr(at_, 3) == triple) {
        at_ += 3;
        for (int extra = 0; extra < 2 && at_ < text_.size() && text_[at_] == quote; ++extra) ++at_;
        return;
      }
      const char c = text_[at_++];
      if (!is_long && (c == quote || c == '\n')) return;
      if (c == '\\' && quote == '"') skip_escaped(is_long);
    }
  }

  /// Moves past the character that a backslash escapes; in a multi-line string, past line ends too.
  void skip_escaped(bool is_long) {
    const std::size_t next = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    if (is_long && next < text_.size() && !is_ascii(text_[next])) {
      refusal_ = not_ascii(text_, next, "must not follow a backslash");
    } else if (at_ < text_.size() && text_[at_] != '\n') {
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_;
  std::optional<Refusal> refusal_{};
};

}  // namespace

std::optional<Refusal> find_bad_text(std::string_view text) {
  if (text.size() > longest_text) {
    return Refusal{0,
                   fmt::format("{} bytes; a deck has at most {} (many data files: use a pattern)",
                               text.size(), longest_text)};
  }
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (is_control(text[at])) {
      return Refusal{at, fmt::format("control character 0x{:02x}; a deck is plain text", byte)};
    }
    const std::size_t bytes = first_utf8_character(text.substr(at)).bytes;
    if (bytes == 0) {
      return Refusal{at, fmt::format("byte 0x{:02x} is not UTF-8; a deck is plain text", byte)};
    }
    at += bytes;
  }
  return std::nullopt;
}

std::optional<Refusal> find_bad_structure(std::string_view text) {
  return StructureScan(text).find_refusal();
}

}  // namespace kzero::deck
