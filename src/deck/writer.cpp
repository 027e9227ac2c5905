#include "deck/writer.hpp"

#include <fmt/format.h>

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

std::string assignment(const Key& key, const Config& config) {
  return fmt::format("{} = {}\n", key.name(), as_toml(key, key.get(config)));
}

/// "Only with optimizer.kind = "adamw" (0.95) or "lion" (0.99)." for a key that depends on another.
std::string uses_of(const Key& key) {
  if (key.depends_on.empty()) return "";
  const Key& other = *find_key(key.depends_on);
  std::vector<std::string> uses;
  for (const Use& use : key.uses) {
    const bool is_own =
        !std::holds_alternative<std::monostate>(use.usual) && use.usual != key.get(Config{});
    uses.push_back(as_toml(other, use.value) +
                   (is_own ? fmt::format(" (default {})", as_toml(key, use.usual)) : ""));
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
      text += fmt::format("# # {}\n# #   {}{}\n# {}", key.doc, allowed(key), unit,
                          assignment(key, Config{}));
    }
  }
  return text;
}

constexpr const char* page_head = R"(# The input deck

A deck is a TOML file. Every key has a default; a key that is not in this page is an error, and so
is a value outside its range. All errors of a deck are shown at once, each with file, line and
column.

- `kzero check DECK` reads a deck and reports what is wrong; `kzero defaults` prints a deck with
  every key.
- On the command line `key=value` overrides the deck: `train.steps=100 train.precision=bf16`,
  `data.files=a.txt,b.txt`. `[[data.blend]]` and `[[evaluate]]` are lists of tables: an override
  names one by its number, `data.blend[0].weight=2`, and `data.blend=` removes them all.
- Sizes are texts with a unit, binary (`"64KiB"`, `"32MiB"`, `"1GiB"`) or decimal (`"32MB"`), or
  integers in bytes.
- Times are texts with units (`"45s"`, `"90min"`, `"1h30min"`, `"2d"`) or numbers in seconds.

This page is made from the key table; `kzero defaults --reference` prints it.
)";

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
  const auto head = [](const std::string& table) {
    return fmt::format(
        "\n## [{}]\n\n| key | default | unit | allowed | meaning |\n"
        "|---|---|---|---|---|\n",
        table);
  };
  const Config defaults;
  const auto row = [&](const Key& key) {
    const std::string uses = uses_of(key);
    return fmt::format("| `{}` | `{}` | {} | {} | {}{}{} |\n", key.name(),
                       as_toml(key, key.get(defaults)), key.unit, allowed(key), key.doc,
                       uses.empty() ? "" : " ", uses);
  };
  std::string text = page_head + table_by_table(head, row);
  for (const TableList& list : table_lists()) {
    text += fmt::format(
        "\n## [[{}]]\n\n{}\n\n| key | default | unit | allowed | meaning |\n"
        "|---|---|---|---|---|\n",
        list.path, list.doc);
    for (const Key& key : list.keys.front()) text += row(key);
  }
  return text;
}

}  // namespace kzero::deck
