#include "deck/changes.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/printable.hpp"
#include "deck/document.hpp"

namespace kzero::deck {

namespace {

/// A key's value as resolved decks write it, and the same shortened to one line.
struct Written {
  std::string toml;
  std::string shown;
};

Written written(const Key& key, const Entry& entry) {
  const Value value = converted(key, entry.value);
  if (!is_allowed(key, value)) return {entry.shown, entry.shown};
  const std::string toml = as_toml(key, value);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value))
    return {toml, printable_start(fmt::format("[\"{}\"]", fmt::join(*list, "\", \"")))};
  return {toml, toml};
}

struct Deck {
  std::map<std::string, Written> values;    // by path
  std::map<std::string, Index> list_sizes;  // tables, by the list's path
};

Deck deck_of(const std::string& text) {
  Deck deck;
  std::vector<Problem> problems;
  for (const Section& section : read_document({"", text}, problems)) {
    const bool is_in_list = section.number >= 0;
    if (is_in_list) deck.list_sizes[section.name] = section.number + 1;
    const std::string table = is_in_list ? table_path(section.name, section.number) : section.name;
    for (const Entry& entry : section.entries) {
      const std::string path = table + "." + entry.name;
      if (const Key* key = find_key(path)) deck.values[path] = written(*key, entry);
    }
  }
  return deck;
}

}  // namespace

std::vector<std::string> changes(const std::string& before, const std::string& now) {
  std::vector<std::string> found;
  const Deck old = deck_of(before), current = deck_of(now);
  const auto has_meaning = [](const Key& key, const Deck& deck) {
    const auto other = deck.values.find(key.depends_on);
    return other == deck.values.end() || std::ranges::any_of(key.uses, [&](const Use& use) {
             return other->second.toml == as_toml(*find_key(key.depends_on), use.value);
           });
  };
  const auto compare = [&](const Key& key) {
    const auto was = old.values.find(key.path), is = current.values.find(key.path);
    if (was == old.values.end() || is == current.values.end() ||
        was->second.toml == is->second.toml)
      return;
    if (has_meaning(key, old) != has_meaning(key, current)) return;  // it follows another change
    found.push_back(fmt::format("{} is {}, was {}", key.path, is->second.shown, was->second.shown));
  };
  for (const Key& key : keys()) compare(key);
  for (const TableList& list : table_lists()) {
    const auto size_in = [&](const Deck& deck) {
      const auto size = deck.list_sizes.find(list.path);
      return size == deck.list_sizes.end() ? 0 : size->second;
    };
    const Index was = size_in(old), is = size_in(current);
    if (was != is) {
      found.push_back(
          fmt::format("{} has {} table{}, had {}", list.path, is, is == 1 ? "" : "s", was));
    }
    for (Index table = 0; table < std::min({was, is, max_tables}); ++table) {
      for (const Key& key : list.keys[table]) compare(key);
    }
  }
  return found;
}

bool changes_bits(std::string_view path) {
  if (const Key* key = find_key(path)) return key->changes_bits;
  const TableList* list = find_list(path);
  return list == nullptr || std::ranges::any_of(list->keys.front(), &Key::changes_bits);
}

std::optional<Config> recorded(const std::string& deck) {
  std::vector<Problem> problems;
  std::optional<Config> config;
  for (const Section& section : read_document({"", deck}, problems)) {
    const bool is_in_list = section.number >= 0;
    if (is_in_list && section.name != "train.phase") continue;
    const std::string table = is_in_list ? table_path(section.name, section.number) : section.name;
    for (const Entry& entry : section.entries) {
      const Key* key = find_key(table + "." + entry.name);
      if (key == nullptr) continue;
      if (!config) config.emplace();
      const Value value = converted(*key, entry.value);
      if (is_allowed(*key, value)) key->set(*config, value);
    }
  }
  return config;
}

std::vector<std::string> settings(const std::string& deck) {
  std::vector<std::string> found;
  const Deck values = deck_of(deck);
  const auto add = [&](const Key& key) {
    const auto value = values.values.find(key.path);
    if (value != values.values.end())
      found.push_back(fmt::format("{} is {}", key.path, value->second.toml));
  };
  for (const Key& key : keys()) add(key);
  for (const TableList& list : table_lists()) {
    const auto size = values.list_sizes.find(list.path);
    if (size == values.list_sizes.end()) continue;
    for (Index table = 0; table < std::min(size->second, max_tables); ++table) {
      for (const Key& key : list.keys[table]) add(key);
    }
  }
  return found;
}

}  // namespace kzero::deck
