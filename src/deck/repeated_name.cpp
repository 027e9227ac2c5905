#include "deck/repeated_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/printable.hpp"
#include "deck/toml.hpp"
#include "deck/toml_positions.hpp"

namespace kzero::deck {

namespace {

std::optional<toml::table> parsed(std::string_view text) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
}

/// The table itself, or the last of a list of tables; null for anything else.
const toml::table* table_in(const toml::node& node) {
  const toml::array* list = node.as_array();
  if (list != nullptr && list->is_array_of_tables()) return list->back().as_table();
  return node.as_table();
}

/// The table whose line is the last of the text: a key after the text would belong to it.
const toml::table* last_table(const toml::table& root, std::string_view text,
                              const Locator& locator) {
  const toml::table* last = &root;
  for (const auto& [key, node] : root) {
    const toml::table* table = table_in(node);
    if (table == nullptr || table->is_inline()) continue;
    const toml::table* inner = last_table(*table, text, locator);
    const auto begin = inner->source().begin;
    if (text[locator.offset(begin.line, begin.column)] != '[') continue;  // of a dotted key
    if (last->source().begin <= begin) last = inner;
  }
  return last;
}

struct FirstDefinition {
  std::string name;  // the parts of the repeated name that are defined
  toml::source_position position;
};

/// Follows `name`, a chain of tables with one key each, through `table` as far as it is defined.
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

/// The name that the statement at `start` defines: "[a.b]", or "a.b = 0" with 0 in place of its
/// value. `offset` is in its name or at its value.
std::optional<toml::table> name_of(std::string_view text, std::size_t start, std::size_t offset) {
  if (text[start] == '[')
    return parsed(text.substr(start, text.find_first_of("\r\n", start) - start));
  std::size_t equals = text.rfind('=', offset);
  if (equals == std::string_view::npos || equals < start) equals = text.find('=', offset);
  if (equals == std::string_view::npos) return std::nullopt;
  return parsed(fmt::format("{}= 0", text.substr(start, equals - start)));
}

/// The key within a one-line table whose value is at `offset`.
std::string_view inner_key(std::string_view text, std::size_t offset) {
  text = text.substr(0, text.substr(0, offset).find_last_not_of("= \t") + 1);
  text = text.substr(text.find_last_of("{,") + 1);
  return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

}  // namespace

Problem repeated_name(const Locator& locator, std::size_t offset) {
  const std::string_view text = locator.text();
  std::size_t line = locator.line_start(offset);
  auto before = parsed(text.substr(0, line));
  bool is_table_line = locator.line_at(line).starts_with('[');
  if (!before && line > 0) {  // the parser is past the line of a table, or within a list
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

}  // namespace kzero::deck
