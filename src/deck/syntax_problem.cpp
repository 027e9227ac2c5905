#include "deck/syntax_problem.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.hpp"
#include "deck/repeated_name.hpp"

namespace kzero::deck {

namespace {

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
