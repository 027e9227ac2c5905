#include "deck/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <toml.hpp>

#include "base/printable.hpp"
#include "deck/guard.hpp"

namespace kzero::deck {

namespace {

using Toml = toml::basic_value<toml::discard_comments, std::map, std::vector>;

/// Maps the parser's positions to locations and excerpts of the text.
class Locator {
 public:
  explicit Locator(const Source& source) : source_(source), lines_{0} {
    for (std::size_t i = 0; i < source.text.size(); ++i) {
      if (source.text[i] == '\n') lines_.push_back(i + 1);
    }
  }

  std::size_t offset(const toml::source_location& at) const {
    const std::size_t line = std::clamp<std::size_t>(at.line(), 1, lines_.size());
    return std::min(lines_[line - 1] + std::max<std::size_t>(at.column(), 1) - 1,
                    source_.text.size());
  }

  SourceLocation place(std::size_t offset) const {
    const auto next = std::ranges::upper_bound(lines_, offset);
    const auto start = static_cast<std::ptrdiff_t>(*std::prev(next));
    const auto characters = std::count_if(
        source_.text.begin() + start, source_.text.begin() + static_cast<std::ptrdiff_t>(offset),
        [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
    SourceLocation place{SourceLocation::Source::deck, next - lines_.begin(), characters + 1, ""};
    place.text = fmt::format("{}:{}:{}", source_.name, place.line, place.column);
    return place;
  }

  /// The start of the key whose value starts at `value`. The parser keeps values alone; a key
  /// stands on the same line, at its start or behind the last '{' or ','.
  std::size_t key_start(std::size_t value) const {
    const std::string& text = source_.text;
    const std::size_t line = *std::prev(std::ranges::upper_bound(lines_, value));
    std::size_t equals = value;
    while (equals > line && (text[equals - 1] == ' ' || text[equals - 1] == '\t')) --equals;
    if (equals == line || text[equals - 1] != '=') return value;
    std::size_t key = equals - 1;
    while (key > line && text[key - 1] != '{' && text[key - 1] != ',') --key;
    return std::min(text.find_first_not_of(" \t", key), value);
  }

  std::string_view line_at(std::size_t offset) const {
    const std::string_view text = source_.text;
    const std::size_t start = *std::prev(std::ranges::upper_bound(lines_, offset));
    const std::string_view line = text.substr(start, text.find_first_of("\r\n", start) - start);
    return line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
  }

  std::string_view excerpt(std::size_t offset, std::size_t length) const {
    return std::string_view(source_.text).substr(offset, length);
  }

 private:
  const Source& source_;
  std::vector<std::size_t> lines_;  // where each line starts
};

Value value_of(const Toml& toml) {
  switch (toml.type()) {
    case toml::value_t::boolean:
      return toml.as_boolean();
    case toml::value_t::integer:
      return Index{toml.as_integer()};
    case toml::value_t::floating:
      return toml.as_floating();
    case toml::value_t::string:
      return toml.as_string().str;
    case toml::value_t::array:
      break;
    default:
      return std::monostate{};
  }
  std::vector<std::string> texts;
  for (const Toml& element : toml.as_array()) {
    if (!element.is_string()) return std::monostate{};
    texts.push_back(element.as_string().str);
  }
  return texts;
}

bool is_list_of_tables(const Toml& toml) {
  return toml.is_array() && !toml.as_array().empty() &&
         std::ranges::all_of(toml.as_array(), [](const Toml& one) { return one.is_table(); });
}

Entry entry_of(const std::string& name, const Toml& toml, const Locator& locator) {
  const toml::source_location location = toml.location();
  const std::size_t value = locator.offset(location);
  Entry entry{.name = name,
              .key_location = locator.place(locator.key_start(value)),
              .value_location = locator.place(value),
              .value = value_of(toml),
              .shown = printable_start(locator.excerpt(value, location.region()))};
  if (toml.is_table()) entry.shown = "a table";
  if (is_list_of_tables(toml)) entry.shown = "a list of tables";  // within a table of a list
  return entry;
}

Section section_of(const std::string& name, const Toml& table, const Locator& locator) {
  return {name, locator.place(locator.key_start(locator.offset(table.location())))};
}

void add_list(const std::string& name, const Toml& list, const Locator& locator,
              std::vector<Section>& sections) {
  Index number = 0;
  for (const Toml& table : list.as_array()) {
    Section section = section_of(name, table, locator);
    section.number = number++;
    for (const auto& [key, value] : table.as_table())
      section.entries.push_back(entry_of(key, value, locator));
    sections.push_back(std::move(section));
  }
}

std::vector<Section> sections_of(const Toml& root, const Locator& locator) {
  std::vector<Section> sections(1), lists;
  for (const auto& [name, value] : root.as_table()) {
    if (is_list_of_tables(value)) {
      add_list(name, value, locator, lists);
      continue;
    }
    if (!value.is_table()) {
      sections.front().entries.push_back(entry_of(name, value, locator));
      continue;
    }
    Section section = section_of(name, value, locator);
    for (const auto& [key, inner] : value.as_table()) {
      if (is_list_of_tables(inner)) {
        add_list(fmt::format("{}.{}", name, key), inner, locator, lists);
      } else {
        section.entries.push_back(entry_of(key, inner, locator));
      }
    }
    sections.push_back(std::move(section));
  }
  std::ranges::move(lists, std::back_inserter(sections));
  return sections;
}

/// The parser's first line without the name of the function that failed.
std::string reason_of(std::string text) {
  text = text.substr(0, text.find('\n'));
  for (const std::string_view prefix : {"[error] ", "toml::"}) {
    if (text.starts_with(prefix)) text = text.substr(prefix.size());
  }
  const std::size_t colon = text.find(':');
  const std::string_view name = std::string_view(text).substr(0, colon);
  if (colon != std::string::npos && name.find(' ') == std::string_view::npos) {
    text = text.substr(std::min(text.find_first_not_of(": ", colon), text.size()));
  }
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return printable_start(text);
}

/// Rewords the parser's message about two definitions, which holds the name and the line of the
/// first.
std::optional<std::string> duplicate_of(std::string_view text) {
  const std::size_t name = text.find("(\"");
  const std::size_t end = text.find("\") already exists");
  if (name == std::string_view::npos || end == std::string_view::npos) return std::nullopt;
  std::size_t digits = text.find(" |", text.find('\n'));
  digits = text.find_first_of("0123456789", digits);
  const std::size_t line_end = text.find_first_not_of("0123456789", digits);
  if (digits == std::string_view::npos) return std::nullopt;
  return fmt::format("'{}' is given twice, first in line {}",
                     printable_start(text.substr(name + 2, end - name - 2)),
                     text.substr(digits, line_end - digits));
}

/// The value of a line such as `precision = bf16`: the commonest mistake deserves its own message.
std::optional<std::string_view> unquoted_text(std::string_view line) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const std::size_t equals = line.find('=');
  const std::size_t start = line.find_first_not_of(" \t", equals + 1);
  if (equals == std::string_view::npos || start == std::string_view::npos) return std::nullopt;
  const std::string_view value = line.substr(start, line.find_first_of(" \t#,", start) - start);
  if (value.empty() || !is_letter(value.front()) || value == "true" || value == "false") {
    return std::nullopt;
  }
  return value;
}

Problem problem_of(const toml::exception& error, const Locator& locator) {
  const std::size_t at = locator.offset(error.location());
  if (const auto duplicate = duplicate_of(error.what())) {
    return {locator.place(locator.key_start(at)), *duplicate};
  }
  if (const auto text = unquoted_text(locator.line_at(at))) {
    return {locator.place(at),
            fmt::format("not valid TOML: {0} is no value; a text is written \"{0}\"",
                        printable_start(*text))};
  }
  const std::string line = printable_start(locator.line_at(at));
  return {locator.place(at),
          fmt::format("not valid TOML: {} (in '{}')", reason_of(error.what()), line)};
}

}  // namespace

std::vector<Section> read_document(const Source& source, std::vector<Problem>& problems) {
  const Locator locator(source);
  if (const auto refusal = find_refusal(source.text)) {
    problems.push_back({locator.place(refusal->offset), refusal->reason});
    return {};
  }
  try {
    std::istringstream stream(source.text);
    const Toml root =
        toml::parse<toml::discard_comments, std::map, std::vector>(stream, source.name);
    return sections_of(root, locator);
  } catch (const toml::exception& error) {
    problems.push_back(problem_of(error, locator));
  } catch (const std::exception& error) {
    problems.push_back(
        {locator.place(0), fmt::format("not valid TOML: {}", reason_of(error.what()))});
  }
  return {};
}

}  // namespace kzero::deck
