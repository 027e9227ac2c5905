#include "deck/changes.hpp"

#include <fmt/ranges.h>

#include <map>

#include "base/printable.hpp"
#include "deck/document.hpp"
#include "deck/former_names.hpp"

namespace kzero::deck {

namespace {

/// A key's value as decks of this version write it, and the same in part of one line.
struct Written {
  std::string toml;
  std::string shown;
};

Written written(const Key& key, const Entry& entry) {
  Value value = entry.value;
  if (auto* text = std::get_if<std::string>(&value)) {
    const std::string_view now = successor_of(key.path, *text);
    if (!now.empty()) *text = now;
  }
  value = converted(key, value);
  if (!is_allowed(key, value)) return {entry.shown, entry.shown};
  const std::string toml = as_toml(key, value);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value))
    return {toml, printable_start(fmt::format("[\"{}\"]", fmt::join(*list, "\", \"")))};
  return {toml, toml};
}

std::map<std::string, Written> values_of(const std::string& deck) {
  std::map<std::string, Written> values;
  std::vector<Problem> problems;
  for (const Section& section : read_document({"", deck}, problems)) {
    for (const Entry& entry : section.entries) {
      const std::string path = section.name + "." + entry.name;
      if (const Key* key = find_key(path)) values[path] = written(*key, entry);
    }
  }
  return values;
}

}  // namespace

std::vector<std::string> changes(const std::string& before, const std::string& now) {
  std::vector<std::string> found;
  const auto old = values_of(before), current = values_of(now);
  for (const Key& key : keys()) {
    const auto was = old.find(key.path), is = current.find(key.path);
    if (was == old.end() || is == current.end() || was->second.toml == is->second.toml) continue;
    found.push_back(fmt::format("{} is {}, was {}", key.path, is->second.shown, was->second.shown));
  }
  return found;
}

}  // namespace kzero::deck
