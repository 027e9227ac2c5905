#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/completion.hpp"
#include "deck/schema.hpp"

namespace kzero::app {

namespace {

constexpr const char* fish_script =
    R"(# Completion of kzero for fish, made by `kzero completion fish`.
function __kzero_settings
  printf '%s\n' {settings}
end
# True where the next word is an argument of the command at a place, counted from 1.
function __kzero_at --argument-names command place
  set -l words (commandline -opc)
  test (count $words) -gt 1; and test "$words[2]" = $command; or return 1
  set -l arguments 0
  for word in $words[3..-1]
    string match -q -- '-*' $word; or set arguments (math $arguments + 1)
  end
  test $place = '*'; or test $arguments -eq (math $place - 1)
end
complete -c kzero -f
{lines})";

/// Quotes a text for fish, which ends it at the first single quote without a backslash.
std::string fish_quoted(const std::string& text) {
  std::string escaped = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped + "'";
}

std::string fish_candidates(const Argument& argument) {
  switch (candidates_of(argument)) {
    case Candidates::choices:
      return fmt::format(" -x -a '{}'", fmt::join(argument.choices, " "));
    case Candidates::decks:
      return " -x -a '(__fish_complete_suffix .toml)'";
    case Candidates::settings:
      return " -x -a '(__kzero_settings)'";
    case Candidates::files:
      return " -r -F";
    case Candidates::none:
      break;
  }
  return " -x";
}

std::string fish_option(const std::string& condition, const Argument& option) {
  std::string line = fmt::format("complete -c kzero -n '{}'", condition);
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (option.takes_value()) line += fish_candidates(option);
  return line + " -d " + fish_quoted(option.text) + "\n";
}

/// Each key once; keys with few values once for each value.
std::vector<std::string> fish_settings() {
  std::vector<std::string> words;
  for (const deck::Key& key : deck::keys()) {
    std::vector<std::string> values;
    if (key.kind == deck::Kind::choice) values.assign(key.choices.begin(), key.choices.end());
    if (key.kind == deck::Kind::boolean) values = {"true", "false"};
    if (values.empty()) values = {""};
    for (const std::string& value : values) words.push_back(key.path + "=" + value);
  }
  return words;
}

}  // namespace

std::string fish_completion(const std::vector<Command>& commands) {
  std::string lines;
  for (const Argument& option : commands.front().options)
    lines += fish_option("__fish_use_subcommand", option);
  for (std::size_t i = 1; i < commands.size(); ++i) {
    const Command& command = commands[i];
    lines += fmt::format("complete -c kzero -n '__fish_use_subcommand' -a {} -d {}\n", command.name,
                         fish_quoted(command.text));
    for (const Argument& option : command.options)
      lines += fish_option("__fish_seen_subcommand_from " + command.name, option);
    for (std::size_t place = 0; place < command.positionals.size(); ++place) {
      const Argument& argument = command.positionals[place];
      const std::string where = argument.is_repeated ? "\"*\"" : std::to_string(place + 1);
      // A repeated argument comes after the others.
      const std::string before =
          argument.is_repeated && place > 0
              ? fmt::format("; and not __kzero_at {} {}", command.name, place)
              : "";
      lines += fmt::format("complete -c kzero -n '__kzero_at {} {}{}'{}\n", command.name, where,
                           before, fish_candidates(argument));
    }
  }
  return fmt::format(fish_script, fmt::arg("settings", fmt::join(fish_settings(), " ")),
                     fmt::arg("lines", lines));
}

}  // namespace kzero::app
