#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/completion.hpp"
#include "deck/schema.hpp"

namespace kzero::app {

namespace {

/// bash splits words at '=', and passes `key=va` as three words.
constexpr const char* bash_script =
    R"(# Completion of kzero for bash, made by `kzero completion bash`.
_kzero() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} command= key= value_of= place=0 options= i
  COMPREPLY=()
  words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }}
  files() {{ compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f "$@" -- "$cur"; [[ $# == 0 ]] || compgen -d -- "$cur"); }}
  decks() {{ files -X '!*.toml'; }}
  keys() {{ compopt -o nospace; words '{keys}'; }}
  # $command,$1 is an option whose value comes next
  takes_value() {{ case $1 in {valued}) return 0 ;; *) return 1 ;; esac; }}
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${{COMP_WORDS[i]}} == '=' ]]; then continue
    elif [[ $value_of ]]; then value_of=
    elif [[ ${{COMP_WORDS[i]}} == -* ]]; then takes_value "$command,${{COMP_WORDS[i]}}" && value_of=$command,${{COMP_WORDS[i]}}
    elif [[ ! $command ]]; then command=${{COMP_WORDS[i]}}
    else ((++place))
    fi
  done
  if [[ $cur == '=' ]]; then key=$prev cur=
  elif [[ $prev == '=' ]]; then key=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  if [[ $key && $key != -* ]]; then
    case $key in
{values}    esac
    return
  fi
  if [[ $value_of ]]; then
    case $value_of in
{option_values}    esac
    return
  fi
  case $command in
    '') words '{commands}'; return ;;
{options}  esac
  if [[ $cur == -* ]]; then words "$options"; return; fi
  case $command,$place in
{places}  esac
}}
complete -F _kzero kzero
)";

/// One case of the script for each key that has few values, or files.
std::string bash_key_values() {
  std::string cases;
  for (const deck::Key& key : deck::keys()) {
    if (key.kind == deck::Kind::choice)
      cases += fmt::format("      {}) words '{}' ;;\n", key.path, fmt::join(key.choices, " "));
    if (key.kind == deck::Kind::boolean)
      cases += fmt::format("      {}) words 'true false' ;;\n", key.path);
    if (key.kind == deck::Kind::text || key.kind == deck::Kind::texts)
      cases += fmt::format("      {}) files ;;\n", key.path);
  }
  return cases;
}

std::string bash_candidates(const Argument& argument) {
  switch (candidates_of(argument)) {
    case Candidates::choices:
      return fmt::format("words '{}'", fmt::join(argument.choices, " "));
    case Candidates::decks:
      return "decks";
    case Candidates::settings:
      return "keys";
    case Candidates::files:
      return "files";
    case Candidates::none:
      break;
  }
  return ":";
}

/// One case for the place of each argument of a command; the last argument may be repeated.
std::string bash_places(const Command& command) {
  std::string cases;
  for (std::size_t i = 0; i < command.positionals.size(); ++i) {
    const Argument& argument = command.positionals[i];
    const std::string place = argument.is_repeated ? "*" : std::to_string(i);
    cases += fmt::format("    {},{}) {} ;;\n", command.name, place, bash_candidates(argument));
  }
  return cases;
}

}  // namespace

std::string bash_completion(const std::vector<Command>& commands) {
  std::vector<std::string> names, keys, valued;
  std::string options, option_values, places;
  for (const Command& command : commands) {
    const bool is_program = &command == &commands.front();
    std::vector<std::string> own;
    for (const Argument& option : command.options) {
      own.insert(own.end(), option.names.begin(), option.names.end());
      if (!option.takes_value()) continue;
      std::vector<std::string> cases;
      for (const std::string& name : option.names)
        cases.push_back(fmt::format("{},{}", is_program ? "" : command.name, name));
      valued.insert(valued.end(), cases.begin(), cases.end());
      option_values +=
          fmt::format("      {}) {} ;;\n", fmt::join(cases, " | "), bash_candidates(option));
    }
    if (is_program) {
      names = own;
      continue;
    }
    names.push_back(command.name);
    options += fmt::format("    {}) options='{}' ;;\n", command.name, fmt::join(own, " "));
    places += bash_places(command);
  }
  for (const deck::Key& key : deck::keys()) keys.push_back(key.path + "=");
  return fmt::format(
      bash_script, fmt::arg("keys", fmt::join(keys, " ")),
      fmt::arg("valued", fmt::join(valued, " | ")), fmt::arg("values", bash_key_values()),
      fmt::arg("option_values", option_values), fmt::arg("commands", fmt::join(names, " ")),
      fmt::arg("options", options), fmt::arg("places", places));
}

}  // namespace kzero::app
