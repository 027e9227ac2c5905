#include "deck/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numeric>

#include "deck/quantity.hpp"

namespace kzero::deck {

namespace {

std::string bound(const Key& key, double value) {
  switch (key.kind) {
    case Kind::size:
      return format_size(static_cast<Index>(value));
    case Kind::duration:
      return format_duration(value);
    case Kind::integer:
      return fmt::format("{}", static_cast<Index>(value));
    default:
      return fmt::format("{}", value);
  }
}

std::string range_phrase(const Key& key) {
  const Range& range = key.range;
  const std::string low = bound(key, range.low);
  const std::string high = bound(key, range.high);
  if (range.low_end == End::excluded) return fmt::format("above {} and at most {}", low, high);
  if (range.high_end == End::excluded) return fmt::format("from {} to below {}", low, high);
  return fmt::format("from {} to {}", low, high);
}

bool is_in(const Range& range, double value) {
  if (!std::isfinite(value)) return false;
  const bool low = range.low_end == End::included ? value >= range.low : value > range.low;
  return low && (range.high_end == End::included ? value <= range.high : value < range.high);
}

/// Returns whether a text has no control characters. No file name or choice needs them, and a log
/// line must stay one line.
bool is_plain(const std::string& text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string real_as_toml(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

/// Formats a short list on one line, and a long list with one element per line.
std::string list_as_toml(const std::vector<std::string>& texts) {
  std::string list;
  for (const auto& text : texts) list += (list.empty() ? "" : ", ") + in_quotes(text);
  if (list.size() < 80) return "[" + list + "]";
  list.clear();
  for (const auto& text : texts) list += "  " + in_quotes(text) + ",\n";
  return "[\n" + list + "]";
}

template <class Read>
Value parsed(const Value& value, Read read) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return std::monostate{};
  const auto result = read(*text);
  return result ? Value(*result) : Value();
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> tables() {
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    if (names.empty() || names.back() != key.table()) names.push_back(key.table());
  }
  return names;
}

const TableList* find_list(std::string_view path) {
  for (const TableList& list : table_lists()) {
    if (list.path == path) return &list;
  }
  return nullptr;
}

std::string table_path(std::string_view list, Index table) {
  return std::string(list) + "[" + std::to_string(table) + "]";
}

namespace {

/// Finds the key of a list's table, such as "data.blend[1].weight"; null if there is none.
const Key* find_list_key(std::string_view path) {
  const std::size_t open = path.find('['), close = path.find("].");
  if (open == std::string_view::npos || close == std::string_view::npos) return nullptr;
  const TableList* list = find_list(path.substr(0, open));
  Index number = -1;
  const auto [end, error] = std::from_chars(path.data() + open + 1, path.data() + close, number);
  if (list == nullptr || error != std::errc() || end != path.data() + close || number < 0 ||
      number >= max_tables)
    return nullptr;
  for (const Key& key : list->keys[number]) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

}  // namespace

std::vector<const Key*> keys_in(const Config& config) {
  std::vector<const Key*> found;
  for (const Key& key : keys()) found.push_back(&key);
  for (const TableList& list : table_lists()) {
    for (Index table = 0; table < std::min(list.size(config), max_tables); ++table) {
      for (const Key& key : list.keys[table]) found.push_back(&key);
    }
  }
  return found;
}

const Key* find_key(std::string_view path) {
  const auto found = std::ranges::find(keys(), path, &Key::path);
  return found == keys().end() ? find_list_key(path) : &*found;
}

Value converted(const Key& key, const Value& value) {
  const auto* integer = std::get_if<Index>(&value);
  const auto* real = std::get_if<double>(&value);
  const auto whole = real ? whole_number(*real) : std::nullopt;
  switch (key.kind) {
    case Kind::integer:
      return integer ? value : whole ? Value(*whole) : Value();
    case Kind::boolean:
      return std::holds_alternative<bool>(value) ? value : Value();
    case Kind::real:
      if (integer) return static_cast<double>(*integer);
      return real ? value : Value();
    case Kind::size:
      if (whole) return *whole;
      return integer ? value : parsed(value, parse_size);
    case Kind::duration:
      if (integer) return static_cast<double>(*integer);
      return real ? value : parsed(value, parse_duration);
    case Kind::texts:
      return std::holds_alternative<std::vector<std::string>>(value) ? value : Value();
    default:
      return std::holds_alternative<std::string>(value) ? value : Value();
  }
}

bool is_allowed(const Key& key, const Value& value) {
  switch (key.kind) {
    case Kind::integer:
    case Kind::size:
      return std::holds_alternative<Index>(value) &&
             is_in(key.range, static_cast<double>(std::get<Index>(value)));
    case Kind::real:
    case Kind::duration:
      return std::holds_alternative<double>(value) && is_in(key.range, std::get<double>(value));
    case Kind::boolean:
      return std::holds_alternative<bool>(value);
    case Kind::text:
      return std::holds_alternative<std::string>(value) && is_plain(std::get<std::string>(value));
    case Kind::texts:
      return std::holds_alternative<std::vector<std::string>>(value) &&
             std::ranges::all_of(
                 std::get<std::vector<std::string>>(value),
                 [](const std::string& text) { return !text.empty() && is_plain(text); });
    case Kind::choice:
      return std::holds_alternative<std::string>(value) &&
             std::ranges::find(key.choices, std::get<std::string>(value)) != key.choices.end();
  }
  return false;
}

bool has_use(const Key& key, std::string_view value) {
  return key.depends_on.empty() ||
         std::ranges::find(key.uses, value, &Use::value) != key.uses.end();
}

const Use* use_in(const Key& key, const Config& config) {
  if (key.depends_on.empty()) return nullptr;
  const Value value = find_key(key.depends_on)->get(config);
  const auto use = std::ranges::find(key.uses, std::get<std::string>(value), &Use::value);
  return use == key.uses.end() ? nullptr : &*use;
}

std::string allowed(const Key& key) {
  switch (key.kind) {
    case Kind::integer:
      return "an integer " + range_phrase(key);
    case Kind::size:
      return "a size such as \"32MiB\" " + range_phrase(key);
    case Kind::real:
      return "a number " + range_phrase(key);
    case Kind::duration:
      return "a time such as \"90min\" " + range_phrase(key);
    case Kind::boolean:
      return "true or false";
    case Kind::text:
      return "a text without control characters";
    case Kind::texts:
      return "a list of texts, none empty or with control characters";
    case Kind::choice:
      break;
  }
  std::vector<std::string> quoted;
  std::ranges::transform(key.choices, std::back_inserter(quoted), in_quotes);
  return alternatives(quoted);
}

std::string allowed_briefly(const Key& key) {
  switch (key.kind) {
    case Kind::integer:
    case Kind::size:
    case Kind::real:
    case Kind::duration:
      break;
    case Kind::text:
    case Kind::texts:
    case Kind::boolean:
      return "";
    case Kind::choice: {
      std::vector<std::string> others;
      for (const std::string& name : key.choices) {
        if (Value(name) != key.get(Config{})) others.push_back(in_quotes(name));
      }
      return alternatives(others);
    }
  }
  constexpr std::string_view from = "from ";
  std::string phrase = range_phrase(key);
  if (phrase.starts_with(from)) phrase.erase(0, from.size());
  const bool bounds_have_units = key.kind == Kind::size || key.kind == Kind::duration;
  return key.unit.empty() || bounds_have_units ? phrase : phrase + " " + key.unit;
}

std::string alternatives(const std::vector<std::string>& texts) {
  std::string phrase;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool is_last = i + 1 == texts.size();
    phrase += (i == 0 ? "" : is_last ? " or " : ", ") + texts[i];
  }
  return phrase;
}

std::string as_toml(const Key& key, const Value& value) {
  switch (key.kind) {
    case Kind::integer:
      return fmt::format("{}", std::get<Index>(value));
    case Kind::size:
      return in_quotes(format_size(std::get<Index>(value)));
    case Kind::real:
      return real_as_toml(std::get<double>(value));
    case Kind::duration:
      return in_quotes(format_duration(std::get<double>(value)));
    case Kind::boolean:
      return std::get<bool>(value) ? "true" : "false";
    case Kind::texts:
      return list_as_toml(std::get<std::vector<std::string>>(value));
    default:
      return in_quotes(std::get<std::string>(value));
  }
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates,
                    std::size_t limit) {
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(word.size(), candidate.size());
    const std::size_t shorter = std::min(word.size(), candidate.size());
    if (longer - shorter > limit) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance > limit || (!best.empty() && distance == limit)) continue;
    best = candidate;
    limit = distance;
  }
  return best;
}

std::string nearest_path(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('.') + 1);
  std::vector<std::string> paths;
  if (const TableList* list = find_list(path.substr(0, path.find('['))); list != nullptr) {
    for (const Key& key : list->keys.front())
      paths.push_back(fmt::format("{}.{}", path.substr(0, path.rfind('.')), key.name()));
  } else {
    if (const std::string_view known = path_of_common_name(name); !known.empty())
      return std::string(known);
    for (const Key& key : keys()) paths.push_back(key.path);
  }
  std::string typed_wrong = nearest(path, paths, 1 + name.size() / 3);
  if (!typed_wrong.empty()) return typed_wrong;
  for (const std::string& candidate : paths) {
    if (candidate.substr(candidate.rfind('.') + 1) == name) return candidate;
  }
  return "";
}

}  // namespace kzero::deck
