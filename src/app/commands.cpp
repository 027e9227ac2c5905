#include "app/commands.hpp"

#include <iostream>

#include "app/deck_file.hpp"
#include "app/file_check.hpp"
#include "app/launch.hpp"
#include "base/printable.hpp"
#include "checkpoint/inspect.hpp"
#include "convert/gpt2.hpp"
#include "convert/gpt2_export.hpp"
#include "deck/reader.hpp"
#include "deck/writer.hpp"
#include "grid/agreement.hpp"
#include "grid/process_grid.hpp"
#include "metrics/data_summary.hpp"
#include "model/definition.hpp"
#include "optim/optimizer.hpp"
#include "train/data_report.hpp"
#include "train/failure.hpp"
#include "train/trainer.hpp"

namespace kzero::app {

namespace {

void print_note(const std::string& note) {
  if (!note.empty()) std::cout << "note        " << note << '\n';
}

/// The parts of a run's setup that the command line decides.
train::RunRequest request_of(const DeckArguments& arguments, const deck::Config& config,
                             const runtime::Session& session) {
  train::RunRequest request;
  request.config = config;
  request.deck = deck::resolved(config);
  request.deck_file = arguments.file;
  request.open_inputs = [&session](const deck::Config& resolved, const grid::Group& ranks) {
    return check_files(resolved, session, ranks);
  };
  return request;
}

void export_checkpoint(const grid::Group& world, const std::string& from, const std::string& to) {
  KZERO_REQUIRE(!from.ends_with(".safetensors"), ExitCode::usage,
                "{}: a safetensors file becomes a checkpoint with --deck DECK", from);
  const convert::ExportTarget target = convert::export_target(to);
  std::vector<std::string> problems;
  const checkpoint::Found found = checkpoint::open(world, from, problems);
  for (const std::string& problem : problems)
    std::cerr << "kzero: passed over: " << printable_lines(problem) << '\n';
  convert::export_gpt2(found, target);
  std::cout << printable(
                   fmt::format("wrote {} and {}", target.weights.string(), target.config.string()))
            << '\n';
}

void import_weights(const grid::Group& world, const std::string& from, const std::string& to,
                    const DeckArguments& arguments) {
  const deck::Config config = read_deck(world, arguments, deck::Purpose::plan);
  checkpoint::Manifest manifest;
  manifest.deck = deck::resolved(config);
  manifest.model = checkpoint::shape_of(config.model);
  manifest.precision = name_of(config.train.precision);
  manifest.state_arrays = optim::make_optimizer(config.optimizer)->state();
  print_note(convert::import_gpt2(world, from, model::define(config)->table({}), to, manifest));
  std::cout << "wrote " << printable(to) << '\n';
}

}  // namespace

ExitCode train(const DeckArguments& arguments) {
  // Kokkos starts with the deck's threads, so the deck is read between the initialization of MPI
  // and of Kokkos.
  deck::Config config;
  const auto read = [&] {
    check_launch(grid::world_group());
    config = read_deck(grid::world_group(), arguments, deck::Purpose::train);
    return config.run.threads;
  };
  const runtime::Session session({.choose_threads = read});
  return train::ending_launch_on_failure(
      [&] { return train::run(request_of(arguments, config, session), session); });
}

ExitCode check(const DeckArguments& arguments, const CheckOptions& options) {
  const bool with_files = options.scope == CheckScope::deck_and_files;
  const deck::Config config =
      deck::read(load(arguments.file), arguments.overrides, {options.ranks, deck::Purpose::train});
  if (with_files) {
    ProblemList problems;
    const train::RunInputs inputs = check_files(config, Inspection{}, problems);
    problems.throw_if_any(ExitCode::files);
    std::cout << metrics::data_lines(train::summary_of(config, inputs.dataset)) << '\n';
    print_note(inputs.initial_note);
    for (const std::string& line : train::data_warnings(config, inputs.dataset))
      std::cout << line << '\n';
  }
  std::cout << printable(arguments.file) << ": no errors"
            << (with_files ? ", nor in its files\n" : "\n");
  return ExitCode::done;
}

ExitCode defaults(DefaultsForm form) {
  std::cout << (form == DefaultsForm::deck ? deck::annotated_defaults()
                                           : deck::reference_markdown());
  return ExitCode::done;
}

ExitCode inspect(const std::string& path, InspectMode mode) {
  std::cout << checkpoint::describe(path);
  if (mode == InspectMode::describe) return ExitCode::done;
  const std::vector<std::string> problems = checkpoint::verify(path);
  for (const std::string& problem : problems) std::cerr << printable_lines(problem) << '\n';
  if (problems.empty()) std::cout << "every checksum agrees\n";
  return problems.empty() ? ExitCode::done : ExitCode::files;
}

ExitCode convert(const std::string& from, const std::string& to, const DeckArguments& arguments) {
  const auto one_thread = [] {
    check_launch(grid::world_group());
    return Index{1};
  };
  const runtime::Session session({.choose_threads = one_thread});
  const grid::Group world = grid::world_group();
  grid::collectively(world, [&] {
    KZERO_REQUIRE(world.size() == 1, ExitCode::usage, "kzero convert runs on one rank, not on {}",
                  world.size());
  });
  if (arguments.file.empty()) {
    export_checkpoint(world, from, to);
  } else {
    import_weights(world, from, to, arguments);
  }
  return ExitCode::done;
}

}  // namespace kzero::app
