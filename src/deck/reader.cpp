#include "deck/reader.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "deck/architecture.hpp"
#include "deck/problem.hpp"
#include "deck/schema.hpp"

namespace kzero::deck {

namespace {

std::string suggestion(const std::string& path) {
  return path.empty() ? "; 'kzero defaults' lists every key"
                      : fmt::format("; did you mean '{}'?", path);
}

/// The list that an override concerns: "train.phase[0].from_step=5", "train.phase=", and without
/// the number of a table. Null if there is none.
const TableList* list_of_override(const std::string& path) {
  const std::string name = path.substr(0, path.find('['));
  if (const TableList* list = find_list(name); list != nullptr) return list;
  return find_key(path) == nullptr ? find_list(name.substr(0, name.rfind('.'))) : nullptr;
}

/// Returns whether the text is "[N]" with N as it is printed.
bool is_table_number(std::string_view text) {
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') return false;
  const std::string_view digits = text.substr(1, text.size() - 2);
  return digits.find_first_not_of("0123456789") == std::string_view::npos &&
         (digits.size() == 1 || digits.front() != '0');
}

/// What an unknown key of a list may have been.
std::string suggestion(const TableList& list, const std::string& near) {
  if (!near.empty()) return suggestion(near);
  std::vector<std::string> names;
  for (const Key& key : list.keys.front()) names.push_back(key.name());
  return fmt::format("; the keys of [[{}]] are {}", list.path, fmt::join(names, ", "));
}

class Reader {
 public:
  void read_deck(const Source& deck) {
    const std::vector<Section> sections = read_document(deck, problems_);
    is_readable_ = problems_.empty();
    for (const Section& section : sections) {
      if (section.name.empty()) {
        for (const Entry& entry : section.entries) read_outside_tables(entry);
        continue;
      }
      std::string path = section.name;
      if (section.number >= 0 ? !begin_list_table(section, path) : !is_table(section)) continue;
      for (Entry entry : section.entries) {
        entry.name = path + "." + entry.name;
        read_entry(entry);
      }
    }
  }

  void read_override(const std::string& argument, Index number) {
    const SourceLocation place{SourceLocation::Source::command_line, number, 0,
                               fmt::format("command line: '{}'", printable_start(argument))};
    if (first_invalid_byte(argument)) {
      problems_.push_back({place, "an override must be UTF-8"});
      return;
    }
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0) {
      problems_.push_back({place, "an override is written as key=value"});
      return;
    }
    const std::string path = argument.substr(0, equals);
    const std::string text = argument.substr(equals + 1);
    if (const TableList* list = list_of_override(path); list != nullptr) {
      if (!may_override(*list, path, text, place)) return;
    }
    const Key* key = find_key(path);
    if (key != nullptr && !overridden_.insert(key->path).second) {
      problems_.push_back(
          {place, fmt::format("key '{}' is given twice on the command line", path)});
      return;
    }
    Entry entry{path, place, place, text, text.empty() ? "nothing" : printable_start(text)};
    if (key != nullptr && !interpret(*key, text, entry)) return;
    read_entry(entry);
  }

  void take_architecture(const Architecture& architecture) {
    const std::string& file = config_.model.config;
    if (!architecture || file.empty() || bad_.contains("model.config")) return;
    for (const ImpliedValue& implied : architecture(file)) {
      const Key& key = *find_key(implied.path);
      const auto set = places_.find(key.path);
      if (set == places_.end()) {
        take(key, implied);
      } else if (!allows(implied, key.get(config_))) {
        problems_.push_back(
            {set->second, fmt::format("{} = {} contradicts model.config, where {}", key.path,
                                      as_toml(key, key.get(config_)), implied.origin)});
      }
    }
  }

  Config finish(const Source& deck, const Target& target) {
    take_default_values();
    for (const Violation& violation : apply_rules(config_, target)) {
      const auto is_bad = [&](const std::string& path) { return bad_.contains(path); };
      if (!is_readable_ || std::ranges::any_of(violation.keys, is_bad)) continue;
      problems_.push_back({place_of(violation, deck), violation.text + note_of(violation)});
    }
    throw_if_any(std::move(problems_));
    return config_;
  }

 private:
  /// Sets keys that were not set to the default for the value of the key they depend on.
  void take_default_values() {
    for (const Key& key : keys()) {
      const Use* use = use_in(key, config_);
      if (use == nullptr || std::holds_alternative<std::monostate>(use->default_value) ||
          places_.contains(key.path))
        continue;
      key.set(config_, use->default_value);
      origins_[key.path] =
          fmt::format("{} is not set, its default with {} = \"{}\" is {}", key.path, key.depends_on,
                      use->value, as_toml(key, use->default_value));
    }
  }

  void take(const Key& key, const ImpliedValue& implied) {
    if (is_allowed(key, implied.value)) {
      key.set(config_, implied.value);
      places_[key.path] = places_["model.config"];
      origins_[key.path] = implied.origin;
      return;
    }
    bad_.insert(key.path);
    problems_.push_back(
        {places_["model.config"],
         fmt::format("{}, but {} must be {}", implied.origin, key.path, allowed(key))});
  }

  static bool is_table_name(const std::string& name) {
    const auto names = tables();
    return std::ranges::find(names, name) != names.end();
  }

  /// Returns whether a section is a table of that name; if not, records a problem.
  bool is_table(const Section& section) {
    if (is_table_name(section.name)) return true;
    problems_.push_back({section.place, find_list(section.name) != nullptr
                                            ? not_a_list(section.name, "a table")
                                            : unknown_table(section.name)});
    return false;
  }

  static std::string not_a_list(const std::string& name, const std::string& found) {
    return fmt::format("'{}' must be a list of tables, [[{}]], found {}", name, name, found);
  }

  /// Creates the list's table for the section, and sets `path` to the table's name in paths of
  /// keys.
  bool begin_list_table(const Section& section, std::string& path) {
    const TableList* list = find_list(section.name);
    if (list != nullptr && section.number < max_tables) {
      list->resize(config_, section.number + 1);
      places_.try_emplace(list->path, section.place);
      path = table_path(list->path, section.number);
      places_[path] = section.place;
      return true;
    }
    if (list != nullptr && section.number == max_tables) {
      problems_.push_back({section.place, fmt::format("[[{}]] may have at most {} tables",
                                                      section.name, max_tables)});
    }
    if (list == nullptr && section.number == 0) add_unknown_list(section);
    return false;
  }

  void add_unknown_list(const Section& section) {
    const std::size_t dot = section.name.find('.');
    if (dot == std::string::npos && is_table_name(section.name)) {
      problems_.push_back({section.place, fmt::format("'{}' must be a table, [{}], found a list of "
                                                      "tables",
                                                      section.name, section.name)});
    } else if (dot == std::string::npos) {
      problems_.push_back({section.place, unknown_table(section.name)});
    } else if (const Key* key = find_key(section.name); key != nullptr) {
      bad_.insert(key->path);
      problems_.push_back({section.place, fmt::format("key '{}' must be {}, found a list of tables",
                                                      key->path, allowed(*key))});
    } else if (is_table_name(section.name.substr(0, dot))) {
      std::vector<std::string> lists;
      for (const TableList& list : table_lists()) lists.push_back(list.path);
      const std::string near = nearest(section.name, lists, 1 + section.name.size() / 3);
      problems_.push_back(
          {section.place,
           fmt::format(
               "key '{}' is not known (value a list of tables){}", printable_start(section.name),
               near.empty() ? suggestion("") : fmt::format("; did you mean [[{}]]?", near))});
    }
  }

  /// Returns whether an override of a list, or of a key in it, should be read as that of a key. An
  /// empty override of a list removes its tables.
  bool may_override(const TableList& list, const std::string& path, const std::string& text,
                    const SourceLocation& place) {
    if (path == list.path && text.empty()) {
      remove_tables(list, place);
      return false;
    }
    const bool has_number = path.substr(list.path.size()).starts_with('[');
    const std::size_t end = path.find('.', list.path.size());
    const std::string number =
        has_number ? path.substr(list.path.size(), end - list.path.size()) : "";
    const Index count = list.size(config_);
    const std::string has = fmt::format("the deck has {} table{} [[{}]], counted from 0", count,
                                        count == 1 ? "" : "s", list.path);
    const auto begins = [&](const Key* key) {
      return key->path.starts_with(list.path + number + ".");
    };
    if (has_number && !is_table_number(number)) {
      problems_.push_back({place, fmt::format("'{}' is not the number of a table; {}",
                                              printable_start(number), has)});
    } else if (!has_number || end == std::string::npos) {
      problems_.push_back(
          {place, fmt::format("'{0}' is a list of tables; an override sets a key of one that the "
                              "deck has, such as {0}[0].{1}, or removes them all with {0}=",
                              list.path, list.keys.front().front().name())});
    } else if (std::ranges::none_of(keys_in(config_), begins)) {
      problems_.push_back({place, has + "; an override can only change an existing table"});
    } else {
      return true;
    }
    return false;
  }

  void remove_tables(const TableList& list, const SourceLocation& place) {
    for (const std::string& key : overridden_) {
      if (key.starts_with(list.path + "["))
        problems_.push_back(
            {place, fmt::format("removes the table of '{}', which is given, too", key)});
    }
    list.resize(config_, 0);
  }

  static std::string unknown_table(const std::string& name) {
    std::vector<std::string> known_names = tables(), lists;
    for (const TableList& list : table_lists()) {
      if (list.path.find('.') == std::string::npos) known_names.push_back(list.path);
      if (list.path.ends_with("." + name))
        return fmt::format("table '{}' is not known; did you mean [[{}]]?", name, list.path);
      lists.push_back(fmt::format("[[{}]]", list.path));
    }
    std::string near = nearest(name, known_names, 1 + name.size() / 3);
    if (const Key* key = find_key(path_of_common_name(name)); near.empty() && key != nullptr)
      near = key->table();
    return fmt::format("table '{}' is not known; {}", printable_start(name),
                       near.empty() ? fmt::format("the tables are {}, {}",
                                                  fmt::join(tables(), ", "), fmt::join(lists, ", "))
                                    : fmt::format("did you mean '{}'?", near));
  }

  void read_outside_tables(const Entry& entry) {
    if (is_table_name(entry.name)) {
      problems_.push_back({entry.key_location, fmt::format("'{}' must be a table, [{}], found {}",
                                                           entry.name, entry.name, entry.shown)});
      return;
    }
    read_entry(entry);
  }

  void read_entry(const Entry& entry) {
    const Key* key = find_key(entry.name);
    if (const TableList* list = find_list(entry.name); list != nullptr) {
      const auto* texts = std::get_if<std::vector<std::string>>(&entry.value);
      if (texts == nullptr || !texts->empty())
        problems_.push_back({entry.key_location, not_a_list(list->path, entry.shown)});
      return;
    }
    if (key == nullptr) {
      add_unknown_key(entry);
      return;
    }
    // TOML refuses a repeated name, but a name in quotes, "model.layers", is another one.
    const auto before = places_.find(key->path);
    if (before != places_.end() && before->second.source == entry.key_location.source) {
      problems_.push_back({entry.key_location, fmt::format("key '{}' is set twice", key->path)});
      return;
    }
    const Value value = converted(*key, entry.value);
    if (is_allowed(*key, value)) {
      key->set(config_, value);
      places_[key->path] = entry.key_location;
      return;
    }
    bad_.insert(key->path);
    problems_.push_back(
        {entry.value_location, fmt::format("key '{}' must be {}, found {}{}", key->path,
                                           allowed(*key), entry.shown, advice(*key, entry))});
  }

  /// The key that was probably meant is not judged: its value may be the one of the unknown key.
  void add_unknown_key(const Entry& entry) {
    const std::string near = nearest_path(entry.name);
    const TableList* list = find_list(entry.name.substr(0, entry.name.find('[')));
    problems_.push_back(
        {entry.key_location,
         fmt::format("key '{}' is not known (value {}){}", printable_start(entry.name), entry.shown,
                     list != nullptr ? suggestion(*list, near) : suggestion(near))});
    if (!near.empty() && !places_.contains(near)) bad_.insert(near);
  }

  static std::string advice(const Key& key, const Entry& entry) {
    const auto* text = std::get_if<std::string>(&entry.value);
    if (text == nullptr) return "";
    if (key.kind == Kind::choice) {
      const std::string near = nearest(*text, key.choices, 1 + text->size() / 3);
      return near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near);
    }
    const bool is_number = key.kind == Kind::integer || key.kind == Kind::real;
    const auto number =
        is_number && *text == entry.shown ? number_in_other_form(*text) : std::nullopt;
    const Value value = number ? converted(key, *number) : Value();
    return is_allowed(key, value) ? fmt::format("; write {}", as_toml(key, value)) : "";
  }

  /// A number that TOML would write otherwise: ".5", "5.", "010".
  static std::optional<double> number_in_other_form(const std::string& text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    return is_whole && std::isfinite(number) ? std::optional(number) : std::nullopt;
  }

  /// Sets the entry's value from the text: TOML, or the bare text if the key is a text. Returns
  /// false if the text starts like TOML but is not valid.
  bool interpret(const Key& key, const std::string& text, Entry& entry) {
    const bool is_quoted = text.starts_with('"') || text.starts_with('\'');
    const bool is_list = key.kind == Kind::texts && text.starts_with('[');
    if (key.kind == Kind::texts && !is_quoted && !is_list) {
      entry.value = split(text);
      return true;
    }
    const bool is_bare = key.kind == Kind::text || key.kind == Kind::choice;
    if (is_bare && !is_quoted) return true;
    std::vector<Problem> problems;
    const auto sections = read_document({"", "value = " + text}, problems);
    const bool is_toml =
        problems.empty() && sections.size() == 1 && sections.front().entries.size() == 1;
    if (is_toml) {
      entry.value = sections.front().entries.front().value;
      if (auto* one = std::get_if<std::string>(&entry.value); one && key.kind == Kind::texts) {
        entry.value = std::vector<std::string>{*one};
      }
    } else if (is_quoted || is_list) {
      bad_.insert(key.path);
      problems_.push_back({entry.key_location, "the value is not valid TOML"});
      return false;
    }
    return true;
  }

  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t start = 0; start < text.size() + 1 && !text.empty();) {
      const std::size_t end = std::min(text.find(',', start), text.size());
      parts.push_back(text.substr(start, end - start));
      start = end + 1;
    }
    return parts;
  }

  /// The location of a broken rule: the first of its keys that the command line set, since the deck
  /// alone may be valid; otherwise the first that the deck set; otherwise the deck as a whole.
  SourceLocation place_of(const Violation& violation, const Source& deck) const {
    const SourceLocation* first = nullptr;
    for (const std::string& path : violation.keys) {
      const auto found = places_.find(path);
      if (found == places_.end()) continue;
      if (found->second.source == SourceLocation::Source::command_line) return found->second;
      if (first == nullptr) first = &found->second;
    }
    return first != nullptr ? *first : SourceLocation{.text = deck.name};
  }

  /// Explains where the value of a key in a rule comes from if the user never set it.
  std::string note_of(const Violation& violation) const {
    const std::string& path = violation.keys.front();
    if (const auto origin = origins_.find(path); origin != origins_.end())
      return "; " + origin->second;
    if (places_.contains(path)) return "";
    const Key& key = *find_key(path);
    const Value value = key.get(Config{});
    return is_allowed(key, value)
               ? fmt::format("; {} is not set, its default is {}", path, as_toml(key, value))
               : fmt::format("; {} is not set", path);
  }

  Config config_;
  std::map<std::string, SourceLocation> places_;  // of the keys that were set
  std::map<std::string, std::string> origins_;    // of the keys that model.config set
  std::set<std::string> bad_;                     // keys whose value was refused
  std::set<std::string> overridden_;
  std::vector<Problem> problems_;
  bool is_readable_ = true;  // the rules judge present values, not missing ones
};

}  // namespace

bool allows(const ImpliedValue& implied, const Value& value) {
  if (!implied.is_binding || is_same_in_fp32(value, implied.value)) return true;
  return implied.may_grow && std::get<Index>(value) > std::get<Index>(implied.value);
}

Config read(const Source& deck, const std::vector<std::string>& overrides, const Target& target,
            const Architecture& architecture) {
  Reader reader;
  reader.read_deck(deck);
  Index number = 0;
  for (const std::string& argument : overrides) reader.read_override(argument, ++number);
  reader.take_architecture(architecture);
  return reader.finish(deck, target);
}

}  // namespace kzero::deck
