#include "app/completion.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <string_view>

#include "app/command_table.hpp"
#include "app/completion_candidates.hpp"
#include "app/completion_script.hpp"

namespace kzero::app {

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
