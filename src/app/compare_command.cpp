#include "app/compare_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/inference_command.hpp"
#include "app/mistakes.hpp"
#include "app/prompt_input.hpp"
#include "app/side_by_side.hpp"
#include "base/printable.hpp"
#include "grid/process_grid.hpp"
#include "infer/source.hpp"
#include "runtime/launch.hpp"

namespace kzero::app {

namespace {

using Json = nlohmann::ordered_json;

/// A model's lines of `kzero generate --json`, on rank 0.
std::vector<Json> answers_of(const std::string& source, const CompareArguments& a,
                             PromptInput& input, const runtime::Session& session) {
  GenerateArguments arguments = a.generate;
  arguments.source = source;
  arguments.json = true;
  std::vector<Json> answers;
  generate_with(arguments, input, session,
                [&](std::string_view line) { answers.push_back(Json::parse(line)); });
  return answers;
}

std::string length_of(char name, const Json& answer) {
  return fmt::format("{}: {} tokens, {}", name, answer["tokens"].size(),
                     answer["reason"].get<std::string>());
}

std::string comparison_text(std::size_t number, const Json& first, const Json& second,
                            Index width) {
  std::string text = fmt::format("--- prompt {}\n", number + 1);
  text += excerpt(first["prompt"].get<std::string>(), width);
  text += side_by_side(length_of('A', first), length_of('B', second), width);
  return text +
         side_by_side(first["text"].get<std::string>(), second["text"].get<std::string>(), width);
}

void print_comparison(const CompareArguments& a, const std::vector<Json>& first,
                      const std::vector<Json>& second) {
  std::size_t same = 0;
  if (!a.json) {
    std::cout << "A = " << printable(a.first) << "\nB = " << printable(a.second) << '\n';
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i]["text"] == second[i]["text"]) ++same;
    std::cout << (a.json ? Json{{"a", first[i]}, {"b", second[i]}}.dump() + '\n'
                         : comparison_text(i, first[i], second[i], a.columns));
  }
  if (!a.json) std::cout << fmt::format("--- {} of {} answers are the same\n", same, first.size());
}

void compare_on(const CompareArguments& a, PromptInput& input, const runtime::Session& session) {
  const grid::Group world = grid::world_group();
  // A wrong name of B is found before A answers.
  const Index tensor = a.generate.tensor > 0 ? a.generate.tensor : world.size();
  for (const std::string& source : {a.first, a.second})
    infer::open(world, source, {tensor, a.generate.precision});
  const std::vector<Json> first = answers_of(a.first, a, input, session),
                          second = answers_of(a.second, a, input, session);
  if (world.is_root()) print_comparison(a, first, second);
}

}  // namespace

CLI::App* add_compare(CLI::App& cli, CompareArguments& a) {
  CLI::App* command = cli.add_subcommand(
      "compare", "print two models' most probable answers to prompts side by side");
  const auto add_model = [&](const char* name, std::string& source) {
    command
        ->add_option(name, source,
                     "a checkpoint, a folder of checkpoints, or a Hugging Face folder")
        ->required();
  };
  add_model("A", a.first);
  add_model("B", a.second);
  command
      ->add_option("prompts", a.generate.prompt_file,
                   "JSON lines {\"prompt\": \"..\", \"max_tokens\": n}; -: standard input, with "
                   "MPICH's mpiexec at most 64 KiB")
      ->required();
  add_length(*command, a.generate);
  add_model_options(*command, a.generate);
  command->add_option("--columns", a.columns, "width of the output")
      ->check(CLI::Range(Index{20}, Index{1000}))
      ->transform(whole_number())
      ->capture_default_str();
  command->add_flag("--json", a.json,
                    "one JSON line a prompt: a and b, each with prompt, text, tokens, reason");
  a.generate.sampling.temperature = 0;
  return command;
}

ExitCode compare(const CompareArguments& arguments) {
  PromptInput input(arguments.generate.prompt_file);
  if (input.is_standard_input() && runtime::launch_rank() == 0) input.start();
  return run_inference([&](const runtime::Session& session) {
    compare_on(arguments, input, session);
    return ExitCode::done;
  });
}

}  // namespace kzero::app
