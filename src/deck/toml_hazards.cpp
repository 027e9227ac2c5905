#include "deck/toml_hazards.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.hpp"

namespace kzero::deck {

namespace {

constexpr int most_parts = 32;  // of a dotted key

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

TomlHazard not_ascii(std::string_view text, std::size_t at, std::string_view where) {
  const std::string_view character = text.substr(at, first_utf8_character(text.substr(at)).bytes);
  return {at, fmt::format("'{}' {}", character, where)};
}

/// Looks for hazards outside of strings and comments, which may contain any text.
class StructureScan {
 public:
  explicit StructureScan(std::string_view text)
      : text_(text), at_(text.starts_with("\xEF\xBB\xBF") ? 3 : 0) {}

  std::optional<TomlHazard> find_hazard() {
    int dots = 0;
    while (at_ < text_.size() && !hazard_) {
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
        return TomlHazard{at_, fmt::format("a key has at most {} parts", most_parts)};
      ++at_;
    }
    return hazard_;
  }

 private:
  /// Moves to the end of the string that starts here. An unclosed string ends with its line or with
  /// the text.
  void skip_string() {
    const char quote = text_[at_];
    const std::string triple(3, quote);
    const bool is_long = text_.substr(at_, 3) == triple;
    at_ += is_long ? 3 : 1;
    while (at_ < text_.size() && !hazard_) {
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
      hazard_ = not_ascii(text_, next, "must not follow a backslash");
    } else if (at_ < text_.size() && text_[at_] != '\n') {
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_;
  std::optional<TomlHazard> hazard_{};
};

}  // namespace

std::optional<TomlHazard> find_toml_hazard(std::string_view text) {
  return StructureScan(text).find_hazard();
}

}  // namespace kzero::deck
