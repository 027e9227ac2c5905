#include "deck/toml_faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "deck/problem.hpp"
#include "deck/toml.hpp"

namespace kzero::deck {

namespace {

constexpr int max_parts = 32;  // of a dotted key

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
      if (c == '.' && ++dots >= max_parts)
        return TomlHazard{at_, fmt::format("a key has at most {} parts", max_parts)};
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

namespace {

std::optional<toml::table> parsed(std::string_view text) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
}

/// Returns the node as a table, or the last table of a list; null for anything else.
const toml::table* table_in(const toml::node& node) {
  const toml::array* list = node.as_array();
  if (list != nullptr && list->is_array_of_tables()) return list->back().as_table();
  return node.as_table();
}

/// Returns the table that the last header of the text opens. A key after the text would belong to
/// it.
const toml::table* last_table(const toml::table& root, std::string_view text,
                              const Locator& locator) {
  const toml::table* last = &root;
  for (const auto& [key, node] : root) {
    const toml::table* table = table_in(node);
    if (table == nullptr || table->is_inline()) continue;
    const toml::table* inner = last_table(*table, text, locator);
    const auto begin = inner->source().begin;
    if (text[locator.offset(begin.line, begin.column)] != '[') continue;  // made by a dotted key
    if (last->source().begin <= begin) last = inner;
  }
  return last;
}

struct FirstDefinition {
  std::string name;  // the part of the repeated name that is defined
  toml::source_position position;
};

/// Follows `name`, a chain of tables with one key each, through `table`. Returns the last part that
/// is defined there.
std::optional<FirstDefinition> first_definition(const toml::table& name, const toml::table& table) {
  std::optional<FirstDefinition> first;
  const toml::table* rest = &name;
  for (const toml::table* here = &table; rest != nullptr && here != nullptr && !rest->empty();) {
    const auto part = rest->begin();
    const auto found = here->find(part->first.str());
    if (found == here->end()) return first;
    const std::string parent = first ? first->name + "." : "";
    first = {parent + std::string(part->first.str()), start_of(found->first, found->second)};
    here = table_in(found->second);
    rest = table_in(part->second);
  }
  return first;
}

/// Returns the name that the statement at `start` defines, such as "[a.b]" or "a.b = 0". The value
/// is replaced by 0. `offset` is within the name or at the value.
std::optional<toml::table> name_of(std::string_view text, std::size_t start, std::size_t offset) {
  if (text[start] == '[')
    return parsed(text.substr(start, text.find_first_of("\r\n", start) - start));
  std::size_t equals = text.rfind('=', offset);
  if (equals == std::string_view::npos || equals < start) equals = text.find('=', offset);
  if (equals == std::string_view::npos) return std::nullopt;
  return parsed(fmt::format("{}= 0", text.substr(start, equals - start)));
}

/// Returns the key within a one-line table whose value is at `offset`.
std::string_view inner_key(std::string_view text, std::size_t offset) {
  text = text.substr(0, text.substr(0, offset).find_last_not_of("= \t") + 1);
  text = text.substr(text.find_last_of("{,") + 1);
  return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

/// Returns the problem for a name that the statement around `offset` defines a second time. The
/// text before that statement must be valid TOML.
Problem repeated_name(const Locator& locator, std::size_t offset) {
  const std::string_view text = locator.text();
  std::size_t line = locator.line_start(offset);
  auto before = parsed(text.substr(0, line));
  bool is_table_line = locator.line_at(line).starts_with('[');
  if (!before && line > 0) {  // the parser stopped after the line of a table, or within a list
    line = locator.line_start(line - 1);
    is_table_line = locator.line_at(line).starts_with('[');
    if (is_table_line) before = parsed(text.substr(0, line));
  }
  const std::size_t start = text.find_first_not_of(" \t", line);
  if (const auto name = before ? name_of(text, start, offset) : std::nullopt) {
    const toml::table* table = is_table_line ? &*before : last_table(*before, text, locator);
    if (const auto first = first_definition(*name, *table)) {
      return {locator.place(start),
              fmt::format("'{}' is given twice, first in line {}", printable_start(first->name),
                          first->position.line)};
    }
  }
  return {locator.place(offset), fmt::format("'{}' is given twice in one table",
                                             printable_start(inner_key(text, offset)))};
}

/// The parser's message: "Error while parsing SCOPE: DETAIL".
struct Message {
  std::string_view scope;
  std::string_view detail;
};

Message message_of(const toml::parse_error& error) {
  constexpr std::string_view prefix = "Error while parsing ";
  std::string_view text = error.description();
  if (!text.starts_with(prefix)) return {"", text};
  text.remove_prefix(prefix.size());
  const std::size_t colon = text.find(": ");
  if (colon == std::string_view::npos) return {"", text};
  return {text.substr(0, colon), text.substr(colon + 2)};
}

/// The wording for messages of this scope (any, if empty) that start with this detail.
struct Wording {
  std::string_view scope;
  std::string_view detail;
  std::string_view plain;
};

constexpr Wording wordings[] = {
    {"string", "encountered end-of-file", "a text has no closing quote"},
    {"array", "encountered end-of-file", "a list has no closing ]"},
    {"array", "expected comma", "expected , or ] in a list"},
    {"array", "expected value", "expected a value or ] in a list"},
    {"inline table", "encountered end-of-file", "a table has no closing }"},
    {"inline table", "expected comma", "expected , or } in a table"},
    {"inline table", "expected key or", "expected a key or } in a table"},
    {"inline table", "expected key-value pair or", "expected a key or } in a table"},
    {"inline table", "expected key-value pair", "a table in one line must not end with a comma"},
    {"table header", "encountered end-of-file", "the name of a table has no closing ]"},
    {"table header", "expected ']'", "the name of a table has no closing ]"},
    {"table header", "tables with blank", "the name of a table is missing"},
    {"root table", "expected keys", "expected a key or a [table]"},
    {"key-value pair", "encountered end-of-file", "expected key = value"},
    {"key-value pair", "expected '='", "expected = after the key"},
    {"key-value pair", "expected value", "the value is missing"},
    {"key", "expected bare key", "expected a key"},
    {"", "expected a comment or whitespace", "expected the end of the line"},
    {"", "could not determine value type", "expected a value"},
    {"", "leading zeroes", "a number must not have leading zeros"},
};

std::string plain_words(const Message& message) {
  const std::size_t saw = std::min(message.detail.find(", saw "), message.detail.size());
  std::string_view expected = message.detail.substr(0, saw);
  std::string_view found = message.detail.substr(saw);
  const auto* wording = std::ranges::find_if(wordings, [&](const Wording& one) {
    return (one.scope.empty() || one.scope == message.scope) && expected.starts_with(one.detail);
  });
  if (wording != std::end(wordings)) expected = wording->plain;
  std::string text = printable_start(expected);
  if (found.empty() || !expected.starts_with("expected")) return text;
  found.remove_prefix(std::string_view(", saw ").size());
  if (found == "'\\n'") found = "the end of the line";
  if (found == "comma") found = "a comma";
  return fmt::format("{}, found {}", text, printable_start(found));
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// A character of a number, of a date, or of a text without its quotes.
bool is_word_character(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80 ||
         std::string_view("_+-.:/").find(c) != std::string_view::npos;
}

std::string_view word_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (at > 0 && is_word_character(text[at - 1])) --at;
  while (end < text.size() && is_word_character(text[end])) ++end;
  return text.substr(at, end - at);
}

/// A value such as bf16 in `precision = bf16`: the most common mistake has its own message.
std::optional<std::string_view> unquoted_text(const Message& message, std::string_view word) {
  const bool is_value = message.scope == "value" || message.scope == "boolean" ||
                        message.scope == "floating-point" || message.scope == "date" ||
                        message.scope == "time" || message.scope.ends_with("integer");
  const bool is_plain = !word.empty() && static_cast<unsigned char>(word.front()) < 0x80 &&
                        std::ranges::any_of(word, is_letter);
  return is_value && is_plain ? std::optional(word) : std::nullopt;
}

}  // namespace

std::optional<WrittenNumber> number_out_of_range(const toml::parse_error& error,
                                                 const Locator& locator) {
  const auto [scope, detail] = message_of(error);
  const bool is_number = scope == "floating-point" || scope.ends_with("integer");
  const bool is_out_of_range = detail.ends_with("is not representable in 64 bits") ||
                               detail.ends_with("could not be interpreted as a value");  // a float
  if (!is_number || !is_out_of_range) return std::nullopt;
  const auto begin = error.source().begin;
  const std::string_view word = word_at(locator.text(), locator.offset(begin.line, begin.column));
  return WrittenNumber{static_cast<std::size_t>(word.data() - locator.text().data()), word.size()};
}

Problem syntax_problem(const toml::parse_error& error, const Locator& locator) {
  const Message message = message_of(error);
  const auto begin = error.source().begin;
  const std::size_t at = locator.offset(begin.line, begin.column);
  if (message.detail.starts_with("cannot redefine") || message.detail.starts_with("cannot insert"))
    return repeated_name(locator, at);
  if (message.detail.starts_with("exceeded maximum nested value depth"))
    return {locator.place(at), fmt::format("nesting deeper than {}", TOML_MAX_NESTED_VALUES)};
  const std::string_view word = word_at(locator.text(), at);
  const auto word_place =
      locator.place(static_cast<std::size_t>(word.data() - locator.text().data()));
  if (number_out_of_range(error, locator))
    return {word_place, fmt::format("{} does not fit 64 bits", printable_start(word))};
  if (const auto text = unquoted_text(message, word)) {
    return {word_place,
            fmt::format("not valid TOML: {0} is not a value; write a text in quotes: \"{0}\"",
                        printable_start(*text))};
  }
  std::string words = plain_words(message);
  // The parser calls a line end in a text a control character.
  if (message.scope.ends_with("string") && locator.text().substr(at).find_first_of("\r\n") == 0)
    words = "a text has no closing quote in its line";
  if (message.detail.starts_with("unknown escape sequence"))
    words += "; write \\\\ for a backslash";
  return {locator.place(at),
          fmt::format("not valid TOML: {} (in '{}')", words, printable_start(locator.line_at(at)))};
}

}  // namespace kzero::deck
