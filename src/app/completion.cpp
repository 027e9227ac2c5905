#include "app/completion.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "app/command_table.hpp"
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

/// The candidates for the last of `words`, the words after `kzero`. One a line: a candidate, a tab,
/// and its description or nothing. They include those that do not begin as the word does. A single
/// line that begins with a colon means files: a colon, the end of their names, a tab, and the part
/// of the word before the file's name. bash splits a word at '='; candidates are then for its last
/// part.
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

constexpr const char* bash_script = R"(_kzero() {
  local found word=${COMP_WORDS[COMP_CWORD]#=}
  mapfile -t found < <(PROGRAM __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  found=("${found[@]%%$'\t'*}")
  if [[ ${found[0]} == :* ]]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -o plusdirs -X "!*${found[0]:1}" -- "$word")
  else
    [[ ${found[0]} == *= ]] && compopt -o nospace
    mapfile -t COMPREPLY < <(compgen -W "${found[*]}" -- "$word")
  fi
}
complete -F _kzero kzero
)";

constexpr const char* zsh_script = R"(#compdef kzero
_kzero() {
  local -a found=("${(@f)$(PROGRAM __complete "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  local -a described=("${(@)${(@)found//:/\\:}/$'\t'/:}") space
  [[ -n $found ]] || return 1
  if [[ $found[1] == :* ]]; then
    compset -P "${(b)found[1]#*$'\t'}"
    _files -g "*${${found[1]%%$'\t'*}#:}"
  else
    [[ $found[1] == *=$'\t'* ]] && space=(-S '')
    _describe argument described "${space[@]}"
  fi
}
if [[ -n ${zsh_eval_context[(r)loadautofunc]} ]]; then _kzero "$@"; else compdef _kzero kzero; fi
)";

constexpr const char* fish_script = R"(function __kzero
  set -l word (commandline -ct)
  set -l found (PROGRAM __complete (commandline -opc)[2..-1] "$word" 2>/dev/null)
  if string match -q ':*' -- "$found[1]"
    __fish_complete_suffix (string match -r '^:([^\t]*)' -- $found[1])[2]
  else
    printf '%s\n' $found
  end
end
complete -c kzero -f -a '(__kzero)'
)";

/// Escapes single quotes for a text in single quotes: don't becomes don'\''t.
std::string quoted(const std::string& text) {
  std::string escaped = "'";
  for (const char c : text) {
    if (c == '\'') escaped += "'\\'";
    escaped += c;
  }
  return escaped + "'";
}

/// A script for bash, zsh or fish that calls `kzero __complete` on every tab. The script finds the
/// program as the shell found `program`: by PATH, or by its full path.
std::string script_for(const std::string& shell, const std::string& program) {
  const bool is_path = program.find('/') != std::string::npos;
  const std::string path = is_path ? std::filesystem::absolute(program).string() : program;
  std::string script = shell == "bash" ? bash_script : shell == "zsh" ? zsh_script : fish_script;
  const std::string mark = "PROGRAM";
  // OpenBLAS may start a thread for each core when it is loaded, which would take longer than the
  // answer.
  return script.replace(script.find(mark), mark.size(), "OPENBLAS_NUM_THREADS=1 " + quoted(path));
}

}  // namespace

void add_completion(CLI::App& cli, const std::string& program, std::function<ExitCode()>& chosen) {
  CLI::App* command = cli.add_subcommand(
      "completion", "print a script for the shell: source <(kzero completion bash)");
  auto* shell = command->add_option("shell", "bash, zsh or fish");
  shell->required()->type_name(text_value)->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&chosen, program, shell] {
    chosen = [program, name = shell->as<std::string>()] {
      std::cout << script_for(name, program);
      return ExitCode::done;
    };
  });
}

bool answers_shell(const CLI::App& cli, int argc, const char* const* argv) {
  if (argc < 2 || std::string_view(argv[1]) != "__complete") return false;
  std::cout << completions(command_table(cli), {argv + 2, argv + argc}) << std::flush;
  return true;
}

}  // namespace kzero::app
