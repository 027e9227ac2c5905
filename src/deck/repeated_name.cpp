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

}  // namespace

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

}  // namespace kzero::deck
