#include "app/cli.hpp"

#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>

#include "app/command_table.hpp"
#include "app/commands.hpp"
#include "app/compare_command.hpp"
#include "app/completion.hpp"
#include "app/convert_command.hpp"
#include "app/evaluate_command.hpp"
#include "app/generate_command.hpp"
#include "app/man_page.hpp"
#include "app/mistakes.hpp"
#include "app/plan_command.hpp"
#include "app/standard_output.hpp"
#include "base/printable.hpp"
#include "comm/failure.hpp"
#include "grid/group.hpp"
#include "runtime/build_facts.hpp"
#include "runtime/launch.hpp"
#include "runtime/signals.hpp"

namespace kzero::app {

namespace {

/// Reports a failure that all ranks share: rank 0 prints it, and every rank shuts down in order.
ExitCode fail_together(const Error& error) {
  if (runtime::launch_rank().value_or(0) == 0)
    std::cerr << "kzero: " << printable_lines(error.what()) << std::endl;
  return error.code();
}

std::string version_text() {
  std::string text;
  for (const auto& [name, value] : runtime::build_facts())
    text += fmt::format("{} {}\n", name, value);
  return text + "mpi " + runtime::mpi_library();
}

void add_deck(CLI::App& command, DeckArguments& arguments) {
  command.add_option("deck", arguments.file, "the input deck (TOML)")
      ->required()
      ->type_name(deck_value);
  command.add_option("overrides", arguments.overrides, "key=value: replaces a key of the deck")
      ->type_name(setting_value);
}

/// Options of `check` in addition to the deck.
struct CheckArguments {
  CheckOptions options;
  bool launch = false;
  SurveyOptions survey;
  std::string algorithms;  // the file to write for run.algorithms; empty: none
};

CLI::App* add_check(CLI::App& cli, DeckArguments& deck, CheckArguments& arguments) {
  CheckOptions& options = arguments.options;
  CLI::App* command =
      cli.add_subcommand("check", "read a deck and report everything wrong with it");
  add_deck(*command, deck);
  auto* ranks =
      command->add_option("--ranks", options.ranks, "check for a launch of this many ranks")
          ->check(CLI::PositiveNumber)
          ->transform(whole_number());
  auto* files = command->add_flag_callback(
      "--files", [&options] { options.scope = CheckScope::deck_and_files; },
      "also read the data and the initial weights, and try the places that a run writes to");
  auto* launch = command->add_flag("--launch", arguments.launch,
                                   "compare the ranks of this launch, measure its nodes and links, "
                                   "and name the odd ones; launch it as a run");
  launch->excludes(ranks)->excludes(files);
  command
      ->add_flag_callback(
          "--json", [&arguments] { arguments.survey.output = SurveyOutput::json; },
          "print what --launch finds as JSON")
      ->needs(launch);
  command
      ->add_option("--rates", arguments.survey.rates,
                   "write what --launch measures to a new file for kzero plan --rates")
      ->type_name("FILE")
      ->needs(launch);
  command
      ->add_option("--algorithms", arguments.algorithms,
                   "run one step of the deck, and write the fastest algorithms of its matrix "
                   "products to a new file for run.algorithms; launch it as a run on GPUs")
      ->type_name("FILE")
      ->excludes(ranks)
      ->excludes(files)
      ->excludes(launch);
  return command;
}

struct InspectArguments {
  DeckArguments named;  // a checkpoint, without overrides; or a deck
  InspectOptions options;
  Index sample = -1;  // negative: a checkpoint
};

CLI::App* add_inspect(CLI::App& cli, InspectArguments& arguments) {
  CLI::App* command = cli.add_subcommand(
      "inspect", "show what a checkpoint holds, or a sequence of packed documents");
  command
      ->add_option("checkpoint", arguments.named.file,
                   "a checkpoint, or a folder of checkpoints; with --sample, an input deck")
      ->required();
  command
      ->add_option("overrides", arguments.named.overrides,
                   "with --sample, key=value: replaces a key of the deck")
      ->type_name(setting_value);
  auto* verify = command->add_flag("--verify", arguments.options.verifies,
                                   "read everything and compare every checksum");
  auto* tensors = command->add_flag("--tensors", arguments.options.lists_tensors,
                                    "also list the shard files, and the tensors with their shapes");
  command
      ->add_option("--sample", arguments.sample,
                   "show this sequence of the deck's training data, numbered from 0, with its "
                   "documents, targets and tokens")
      ->check(CLI::NonNegativeNumber)
      ->transform(whole_number())
      ->excludes(verify)
      ->excludes(tensors);
  return command;
}

ExitCode inspect(const InspectArguments& arguments) {
  const auto& [path, overrides] = arguments.named;
  if (arguments.sample >= 0) return inspect_sample(arguments.named, arguments.sample);
  KZERO_REQUIRE(overrides.empty(), ExitCode::usage,
                "kzero inspect {} takes no further argument without --sample, found {}", path,
                printable_start(overrides.front()));
  return inspect(path, arguments.options);
}

ExitCode check(const DeckArguments& deck, const CheckArguments& arguments) {
  if (!arguments.algorithms.empty()) return measure_algorithms(deck, arguments.algorithms);
  return arguments.launch ? survey_launch(deck, arguments.survey) : check(deck, arguments.options);
}

/// A command prints its result, or a log of work whose result is elsewhere.
enum class Printed { result, log };

/// Runs a command and turns its exceptions into a message and an exit code. A signal that arrives
/// later finds all work complete and does not change the code.
ExitCode guarded(const std::function<ExitCode()>& command, Printed printed) {
  if (printed == Printed::result) runtime::end_on_hangup();
  const auto run = [&] {
    try {
      return command();
    } catch (const grid::AgreedError& error) {
      return fail_together(error);
    } catch (...) {
      const comm::Failure failure = comm::current_failure();
      comm::end_launch(failure);
      return failure.code;
    }
  };
  ExitCode code = run();
  std::cout.flush();
  if (printed == Printed::result) code = code_with_output(code);
  runtime::leave_on_signals(static_cast<int>(code));
  return code;
}

/// Prepares output and signals. Returns false, after a message, if the process may not start a
/// thread.
bool prepare_process() {
  reserve_standard_descriptors();
  watch_output();
  try {
    runtime::take_signals();
    return true;
  } catch (...) {
    comm::end_launch(comm::current_failure());
    return false;
  }
}

}  // namespace

ExitCode main(int argc, char** argv) {
  if (!prepare_process()) return ExitCode::other;
  CLI::App cli("Trains GPT-style transformers with ZeRO data parallelism.", "kzero");
  cli.set_version_flag("-v,--version", version_text);
  cli.require_subcommand(1);
  std::function<ExitCode()> chosen;
  DeckArguments deck;

  CLI::App* training = cli.add_subcommand("train", "train a model; launch it with mpiexec or srun");
  add_deck(*training, deck);
  bool is_verbose = false;
  training->add_flag("--verbose", is_verbose,
                     "print tables of memory and traffic at the end, not one line each");
  training->callback([&] {
    chosen = [&] {
      return train(deck, is_verbose ? metrics::Detail::tables : metrics::Detail::brief);
    };
  });

  CheckArguments checked;
  add_check(cli, deck, checked)->callback([&] { chosen = [&] { return check(deck, checked); }; });

  PlanArguments planned;
  add_plan(cli, planned)->callback([&] { chosen = [&] { return plan(planned); }; });

  DefaultsArguments listed;
  add_defaults(cli, listed)->callback([&] { chosen = [&] { return defaults(listed); }; });

  InspectArguments inspected;
  add_inspect(cli, inspected)->callback([&] { chosen = [&] { return inspect(inspected); }; });

  ConvertArguments converted;
  add_convert(cli, converted)->callback([&] { chosen = [&] { return convert(converted); }; });

  EvaluateArguments evaluated;
  add_evaluate(cli, evaluated)->callback([&] { chosen = [&] { return evaluate(evaluated); }; });

  GenerateArguments generated;
  add_generate(cli, generated)->callback([&] { chosen = [&] { return generate(generated); }; });
  CompareArguments compared;
  add_compare(cli, compared)->callback([&] { chosen = [&] { return compare(compared); }; });

  add_completion(cli, argv[0], chosen);
  add_man(cli, chosen);

  if (answers_shell(cli, argc, argv)) return ExitCode::done;
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_mistake = error.get_exit_code() != 0,
               is_first = runtime::launch_rank().value_or(0) == 0;
    if (is_first && is_mistake)
      std::cerr << "kzero: " << printable_lines(explain(cli, error)) << std::endl;
    if (is_first && !is_mistake) cli.exit(error);
    return code_with_output(is_mistake ? ExitCode::usage : ExitCode::done);
  }
  return guarded(chosen, training->parsed() ? Printed::log : Printed::result);
}

}  // namespace kzero::app
