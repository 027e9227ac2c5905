#include "app/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <vector>

#include "deck/schema.hpp"

namespace kzero::app {

namespace {

using Words = std::vector<std::string>;

Words option_words(const CLI::App& app) {
  Words words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    for (const std::string& name : option->get_snames()) words.push_back("-" + name);
  }
  return words;
}

/// One case of the script for each key whose values are few, or files.
std::string value_cases() {
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

/// bash splits words at '=', and passes `key=va` as three words.
constexpr const char* script = R"(# Completion of kzero for bash, made by `kzero completion bash`.
_kzero() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} command= key= has_deck= options i
  COMPREPLY=()
  words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }}
  files() {{ compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f "$@" -- "$cur"; [[ $# == 0 ]] || compgen -d -- "$cur"); }}
  keys() {{ compopt -o nospace; words '{keys}'; }}
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in
      -*) ;;
      *.toml) has_deck=yes ;;
      *) [[ $command ]] || command=${{COMP_WORDS[i]}} ;;
    esac
  done
  if [[ $cur == '=' ]]; then key=$prev cur=
  elif [[ $prev == '=' ]]; then key=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  if [[ $key ]]; then
    case $key in
{values}    esac
    return
  fi
  case $command in
    '') words '{commands}'; return ;;
{options}  esac
  case $prev in
    --set) keys; return ;;
    --deck) files -X '!*.toml'; return ;;
    --config) files; return ;;
    --dtype) words 'float32 bfloat16 float16'; return ;;
    --precision) words 'fp32 bf16 fp16'; return ;;
    --prompts | --tokenizer) files; return ;;
    --prompt | --stop) return ;;
  esac
  if [[ $cur == -* ]]; then words "$options"
  else
    case $command in
      {with_deck}) if [[ $has_deck ]]; then keys; else files -X '!*.toml'; fi ;;
      completion) words bash ;;
      defaults) ;;
      *) files ;;
    esac
  fi
}}
complete -F _kzero kzero
)";

std::string bash_completion(const CLI::App& cli) {
  Words commands, with_deck, keys;
  std::string options;
  for (const CLI::App* command : cli.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string& name = command->get_name();
    commands.push_back(name);
    if (command->get_option_no_throw("overrides") != nullptr) with_deck.push_back(name);
    options +=
        fmt::format("    {}) options='{}' ;;\n", name, fmt::join(option_words(*command), " "));
  }
  for (const std::string& option : option_words(cli)) commands.push_back(option);
  for (const deck::Key& key : deck::keys()) keys.push_back(key.path + "=");
  return fmt::format(script, fmt::arg("keys", fmt::join(keys, " ")),
                     fmt::arg("values", value_cases()),
                     fmt::arg("commands", fmt::join(commands, " ")), fmt::arg("options", options),
                     fmt::arg("with_deck", fmt::join(with_deck, " | ")));
}

}  // namespace

void add_completion(CLI::App& cli, std::function<ExitCode()>& chosen) {
  CLI::App* command = cli.add_subcommand(
      "completion", "print a script for the shell: source <(kzero completion bash)");
  command->add_option("shell", "bash")->required()->check(CLI::IsMember({"bash"}));
  command->callback([&] {
    chosen = [&] {
      std::cout << bash_completion(cli);
      return ExitCode::done;
    };
  });
}

}  // namespace kzero::app
