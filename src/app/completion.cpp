#include "app/completion.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

namespace kzero::app {

Candidates candidates_of(const Argument& argument) {
  if (!argument.choices.empty()) return Candidates::choices;
  if (argument.value == deck_value) return Candidates::decks;
  if (argument.value == setting_value) return Candidates::settings;
  return argument.value == text_value ? Candidates::files : Candidates::none;
}

std::string quoted(const std::string& text) {
  std::string escaped = "'";
  for (const char c : text) {
    if (c == '\'') escaped += "'\\'";
    escaped += c;
  }
  return escaped + "'";
}

void add_completion(CLI::App& cli, std::function<ExitCode()>& chosen) {
  CLI::App* command = cli.add_subcommand(
      "completion", "print a script for the shell: source <(kzero completion bash)");
  auto* shell = command->add_option("shell", "bash, zsh or fish");
  shell->required()->type_name(text_value)->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&, shell] {
    chosen = [&, name = shell->as<std::string>()] {
      const std::vector<Command> commands = command_table(cli);
      std::cout << (name == "bash"  ? bash_completion(commands)
                    : name == "zsh" ? zsh_completion(commands)
                                    : fish_completion(commands));
      return ExitCode::done;
    };
  });
}

}  // namespace kzero::app
