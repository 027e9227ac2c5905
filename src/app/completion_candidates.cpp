#include "app/completion_candidates.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "deck/schema.hpp"

namespace kzero::app {

namespace {

/// The candidates for the part of a word that follows `before`.
struct Candidates {
  std::size_t hidden = 0;  // the beginning of the word that the shell does not treat as its part
  std::string before{};
  std::string lines{};

  void add(const std::string& word, const std::string& text = "") {
    const std::string shown = before.substr(std::min(hidden, before.size()));
    lines += fmt::format("{}{}\t{}\n", shown, word, text);
  }
  void add_names(const Argument& argument) {
    for (const std::string& name : argument.names) add(name, argument.text);
  }
  void add_files(const std::string& end) { lines = fmt::format(":{}\t{}\n", end, before); }

  /// A key of the deck, or a value of the key before '='.
  void add_settings(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      for (const deck::Key& key : deck::keys()) add(key.path + "=", key.doc);
      return;
    }
    const deck::Key* key = deck::find_key(word.substr(0, equals));
    if (key == nullptr) return;
    before += word.substr(0, equals + 1);
    for (const std::string& choice : key->choices) add(choice);
    if (key->kind == deck::Kind::boolean)
      for (const char* value : {"true", "false"}) add(value);
    if (key->kind == deck::Kind::text || key->kind == deck::Kind::texts) add_files("");
  }

  void add_values(const Argument& argument, const std::string& word) {
    for (const std::string& choice : argument.choices) add(choice);
    if (!argument.choices.empty()) return;
    if (argument.value == setting_value) add_settings(word);
    if (argument.value == deck_value) add_files(".toml");
    if (argument.value == text_value) add_files("");
  }
};

/// The command line before the word that is completed.
struct Line {
  const std::vector<Command>& commands;
  const Command* command = &commands.front();
  const Argument* open = nullptr;  // an option whose value comes next
  std::size_t place = 0;           // of the command's next positional argument
  std::vector<const Argument*> used{};

  bool in_program() const { return command == &commands.front(); }

  /// The option of this name, which may be followed by '=' and a value; null if there is none.
  const Argument* option(const std::string& word) const {
    const auto& options = command->options;
    const std::string name = word.substr(0, word.find('='));
    const auto found = std::ranges::find_if(options, [&](const Argument& one) {
      return std::ranges::find(one.names, name) != one.names.end();
    });
    return found == options.end() ? nullptr : &*found;
  }

  /// Reads one more word. Returns false if it is not a command where a command is needed.
  bool read(const std::string& word) {
    if (open != nullptr) {
      open = nullptr;
    } else if (word.starts_with('-')) {
      const Argument* known = option(word);
      const bool has_value = word.find('=') != std::string::npos;
      if (known != nullptr && known->takes_value() && !has_value) open = known;
      used.push_back(known);
    } else if (in_program()) {
      const auto found = std::ranges::find(commands, word, &Command::name);
      if (found == commands.end()) return false;
      command = &*found;
    } else {
      ++place;
    }
    return true;
  }

  /// The positional argument that comes next; null if there is none.
  const Argument* next() const {
    const auto& all = command->positionals;
    if (place < all.size()) return &all[place];
    return !all.empty() && all.back().is_repeated ? &all.back() : nullptr;
  }

  std::string candidates(const std::string& word, std::size_t hidden) const {
    Candidates found{hidden};
    const std::size_t equals = word.find('=');
    const bool is_option = word.starts_with('-');
    if (open != nullptr) {
      found.add_values(*open, word);
    } else if (is_option && equals != std::string::npos) {
      found.before = word.substr(0, equals + 1);
      const Argument* known = option(word);
      if (known != nullptr) found.add_values(*known, word.substr(equals + 1));
    } else if (!is_option && !in_program()) {
      if (next() != nullptr) found.add_values(*next(), word);
    } else {
      if (in_program())
        for (const Command& one : commands)
          if (&one != command) found.add(one.name, one.text);
      for (const Argument& one : command->options)
        if (one.is_repeated || std::ranges::find(used, &one) == used.end()) found.add_names(one);
    }
    return found.lines;
  }
};

}  // namespace

std::string completions(const std::vector<Command>& commands,
                        const std::vector<std::string>& words) {
  std::vector<std::string> joined;  // bash splits a word at '='
  std::size_t hidden = 0;
  bool continues = false;
  for (const std::string& word : words) {
    const bool is_equals = word == "=";
    if (!joined.empty() && (is_equals || continues)) {
      joined.back() += word;
    } else {
      joined.push_back(word);
      hidden = 0;
    }
    if (is_equals) hidden = joined.back().size();
    continues = is_equals;
  }
  if (joined.empty()) joined.emplace_back();
  const std::string last = joined.back();
  joined.pop_back();
  Line line{commands};
  const bool is_known =
      std::ranges::all_of(joined, [&](const auto& word) { return line.read(word); });
  return is_known ? line.candidates(last, hidden) : "";
}

}  // namespace kzero::app
