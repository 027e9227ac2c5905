#include "deck/writer.hpp"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <utility>

#include "deck/schema.hpp"

namespace kzero::deck {

namespace {

/// Writes one table after another, each key formatted by `write`.
template <class Head, class Write>
std::string table_by_table(Head head, Write write) {
  std::string text;
  std::string table;
  for (const Key& key : keys()) {
    if (key.table() != table) {
      table = key.table();
      text += head(table);
    }
    text += write(key);
  }
  return text;
}

/// Returns whether a key of a list's table has no default.
bool must_be_set(const Key& key) { return !is_allowed(key, key.get(Config{})); }

std::string assignment(const Key& key, const Config& config) {
  return fmt::format("{} = {}\n", key.name(), as_toml(key, key.get(config)));
}

/// "Only with optimizer.kind = "adamw" (0.95) or "lion" (0.99)." for a key that depends on another.
std::string uses_of(const Key& key) {
  if (key.depends_on.empty()) return "";
  const Key& other = *find_key(key.depends_on);
  std::vector<std::string> uses;
  for (const Use& use : key.uses) {
    const bool is_own = !std::holds_alternative<std::monostate>(use.default_value) &&
                        use.default_value != key.get(Config{});
    uses.push_back(as_toml(other, use.value) +
                   (is_own ? fmt::format(" (default {})", as_toml(key, use.default_value)) : ""));
  }
  return fmt::format("Only with {} = {}.", key.depends_on, alternatives(uses));
}

/// Writes the tables of a deck's lists.
std::string list_tables(const Config& config) {
  std::string text;
  for (const TableList& list : table_lists()) {
    for (Index table = 0; table < list.size(config); ++table) {
      text += fmt::format("\n[[{}]]\n", list.path);
      for (const Key& key : list.keys[table]) text += assignment(key, config);
    }
  }
  return text;
}

/// A table of each list, as comments.
std::string annotated_lists() {
  std::string text;
  for (const TableList& list : table_lists()) {
    text += fmt::format("\n# {}\n# [[{}]]\n", list.doc, list.path);
    for (const Key& key : list.keys.front()) {
      const std::string unit = key.unit.empty() ? "" : fmt::format(" ({})", key.unit);
      text += fmt::format("# # {}\n# #   {}{}{}\n# {}", key.doc, allowed(key), unit,
                          must_be_set(key) ? "; must be set" : "", assignment(key, Config{}));
    }
  }
  return text;
}

constexpr const char* page_head = R"(# The input deck

A deck is a TOML file. Every key has a default. An unknown key or a value that is not allowed is an
error.

- `kzero check DECK` checks a deck. `kzero defaults` prints a deck with every key.
- `key=value` on the command line overrides the deck: `train.steps=100`, `data.files=a.txt,b.txt`.
- `[[train.phase]]`, `[[optimizer.group]]`, `[[data.blend]]` and `[[evaluate]]` are lists of at most
  100 tables each. An override changes a table that the deck has, by its number from 0:
  `data.blend[0].weight=2`. `data.blend=` removes all of them. An override adds none.
- A size is a text with a binary unit (`"64KiB"`, `"32MiB"`, `"1GiB"`) or a decimal one (`"32MB"`),
  or an integer in bytes.
- A time is a text with units (`"45s"`, `"90min"`, `"1h30min"`, `"2d"`) or a number in seconds.
- A key has the type of its default. Texts must not contain control characters.

`kzero defaults --reference` prints this page.
)";

constexpr const char* columns = "| key | default; allowed | meaning |\n|---|---|---|\n";

/// The use that at least three keys of a table share; empty if there is none. The page mentions it
/// once and marks these keys.
std::string shared_use(const std::string& table) {
  std::map<std::string, int> counts;
  for (const Key& key : keys()) {
    if (key.table() == table && !key.depends_on.empty()) ++counts[uses_of(key)];
  }
  for (const auto& [uses, count] : counts) {
    if (count >= 3) return uses;
  }
  return "";
}

std::string reference_head(const std::string& table) {
  std::string uses = shared_use(table);
  if (!uses.empty())
    uses = "The keys marked * need" + uses.substr(std::string_view("Only with").size()) + "\n\n";
  return fmt::format("\n## [{}]\n\n{}{}", table, uses, columns);
}

std::string reference_row(const Key& key) {
  const std::string uses = uses_of(key);
  const bool is_marked = !uses.empty() && uses == shared_use(key.table());
  const std::string values = allowed_briefly(key);
  const std::string value =
      must_be_set(key) ? "must be set" : fmt::format("`{}`", as_toml(key, key.get(Config{})));
  return fmt::format("| `{}`{} | {}{} | {}{} |\n", key.name(), is_marked ? " *" : "", value,
                     values.empty() ? "" : "; " + values, key.doc,
                     uses.empty() || is_marked ? "" : " " + uses);
}

}  // namespace

std::string resolved(const Config& config) {
  const auto head = [first = true](const std::string& table) mutable {
    const bool was_first = std::exchange(first, false);
    return fmt::format("{}[{}]\n", was_first ? "" : "\n", table);
  };
  return table_by_table(head, [&](const Key& key) { return assignment(key, config); }) +
         list_tables(config);
}

std::string annotated_defaults() {
  const auto head = [](const std::string& table) { return fmt::format("\n[{}]\n", table); };
  const Config defaults;
  return "# Every key of a kzero deck with its default. Keep the ones to change; the rest may be "
         "left "
         "out.\n" +
         table_by_table(head,
                        [&](const Key& key) {
                          const std::string unit =
                              key.unit.empty() ? "" : fmt::format(" ({})", key.unit);
                          const std::string uses = uses_of(key);
                          return fmt::format("# {}\n{}#   {}{}\n{}", key.doc,
                                             uses.empty() ? "" : fmt::format("# {}\n", uses),
                                             allowed(key), unit, assignment(key, defaults));
                        }) +
         annotated_lists();
}

std::string reference_markdown() {
  std::string text = page_head + table_by_table(reference_head, reference_row);
  for (const TableList& list : table_lists()) {
    text += fmt::format("\n## [[{}]]\n\n{}\n\n{}", list.path, list.doc, columns);
    for (const Key& key : list.keys.front()) text += reference_row(key);
  }
  return text;
}

}  // namespace kzero::deck
