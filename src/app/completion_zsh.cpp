#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/completion.hpp"
#include "deck/schema.hpp"

namespace kzero::app {

namespace {

constexpr const char* zsh_script = R"(#compdef kzero
# Completion of kzero for zsh, made by `kzero completion zsh`.
_kzero_setting() {{
  if compset -P 1 '*='; then
    case ${{IPREFIX##*[[:space:]]}} in
{values}    esac
  else
    compadd -S '' -- {keys}
  fi
}}
_kzero() {{
  local line state
  local -a commands=(
{commands}  )
  _arguments -C{program} '1: :->command' '*:: :->arguments' && return
  case $state in
    command) _describe command commands ;;
    arguments)
      case $line[1] in
{arguments}      esac ;;
  esac
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _kzero "$@"; else compdef _kzero kzero; fi
)";

/// One case of the script for each key that has few values, or files.
std::string zsh_key_values() {
  std::string cases;
  for (const deck::Key& key : deck::keys()) {
    if (key.kind == deck::Kind::choice)
      cases += fmt::format("      {}=) compadd -- {} ;;\n", key.path, fmt::join(key.choices, " "));
    if (key.kind == deck::Kind::boolean)
      cases += fmt::format("      {}=) compadd -- true false ;;\n", key.path);
    if (key.kind == deck::Kind::text || key.kind == deck::Kind::texts)
      cases += fmt::format("      {}=) _files ;;\n", key.path);
  }
  return cases;
}

/// Escapes characters that _arguments and _describe interpret: brackets and colons.
std::string zsh_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

/// The part of a specification that tells how to complete a value: ":name:action".
std::string zsh_candidates(const Argument& argument) {
  const auto action = [&]() -> std::string {
    switch (candidates_of(argument)) {
      case Candidates::choices:
        return fmt::format("({})", fmt::join(argument.choices, " "));
      case Candidates::decks:
        return "_files -g \"*.toml(-.)\"";
      case Candidates::settings:
        return "_kzero_setting";
      case Candidates::files:
        return "_files";
      case Candidates::none:
        break;
    }
    return " ";
  };
  return fmt::format(":{}:{}", zsh_text(argument.value), action());
}

std::string zsh_specifications(const Command& command) {
  std::string specifications;
  for (const Argument& option : command.options) {
    for (const std::string& name : option.names) {
      std::string text = fmt::format("{}[{}]", name, zsh_text(option.text));
      if (option.takes_value()) text += zsh_candidates(option);
      specifications += " " + quoted(option.is_repeated ? "*" + text : text);
    }
  }
  for (std::size_t i = 0; i < command.positionals.size(); ++i) {
    const Argument& argument = command.positionals[i];
    const std::string place = argument.is_repeated ? "*" : std::to_string(i + 1);
    specifications += " " + quoted(place + zsh_candidates(argument));
  }
  return specifications;
}

}  // namespace

std::string zsh_completion(const std::vector<Command>& commands) {
  std::string names, arguments;
  std::vector<std::string> keys;
  for (std::size_t i = 1; i < commands.size(); ++i) {
    const Command& command = commands[i];
    names += "    " + quoted(command.name + ":" + zsh_text(command.text)) + "\n";
    arguments +=
        fmt::format("        {}) _arguments{} ;;\n", command.name, zsh_specifications(command));
  }
  for (const deck::Key& key : deck::keys()) keys.push_back(key.path + "=");
  return fmt::format(zsh_script, fmt::arg("values", zsh_key_values()),
                     fmt::arg("keys", fmt::join(keys, " ")), fmt::arg("commands", names),
                     fmt::arg("program", zsh_specifications(commands.front())),
                     fmt::arg("arguments", arguments));
}

}  // namespace kzero::app
