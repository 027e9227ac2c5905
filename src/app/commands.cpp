#include "app/commands.hpp"

#include <iostream>

#include "app/deck_file.hpp"
#include "app/file_check.hpp"
#include "app/launch.hpp"
#include "app/sample_text.hpp"
#include "base/printable.hpp"
#include "checkpoint/inspect.hpp"
#include "comm/failure.hpp"
#include "convert/architecture.hpp"
#include "convert/origin.hpp"
#include "deck/reader.hpp"
#include "deck/writer.hpp"
#include "engine/saved_parameters.hpp"
#include "grid/process_grid.hpp"
#include "metrics/data_summary.hpp"
#include "model/definition.hpp"
#include "run/checkpoints.hpp"
#include "run/data_report.hpp"
#include "run/trainer.hpp"

namespace kzero::app {

namespace {

/// The parts of a run's setup that depend on the command line.
run::RunRequest request_of(const DeckArguments& arguments, const deck::Config& config,
                           const runtime::Session& session, metrics::Detail detail) {
  run::RunRequest request;
  request.config = config;
  request.deck = deck::resolved(config);
  request.deck_file = arguments.file;
  request.detail = detail;
  request.open_inputs = [&session](const deck::Config& resolved, const grid::Group& ranks) {
    return check_files(resolved, session, ranks);
  };
  request.gather_origin = [config] { return convert::gather_origin(config); };
  return request;
}

}  // namespace

void print_note(const std::string& note) {
  if (!note.empty()) std::cout << "note        " << note << '\n';
}

ExitCode train(const DeckArguments& arguments, metrics::Detail detail) {
  // Kokkos starts with the deck's threads, so the deck is read after MPI and before Kokkos is
  // initialized.
  deck::Config config;
  const auto read = [&] {
    check_launch(grid::world_group());
    config = read_deck(grid::world_group(), arguments, deck::Purpose::train);
    return config.run.threads;
  };
  const runtime::Session session({.choose_threads = read, .has_heartbeat = true});
  config.placement = placement_of(config, session);
  return comm::ending_launch_on_failure(
      [&] { return run::train(request_of(arguments, config, session, detail), session); });
}

ExitCode check(const DeckArguments& arguments, const CheckOptions& options) {
  const bool with_files = options.scope == CheckScope::deck_and_files;
  const deck::Config config = deck::read(
      load(arguments.file), arguments.overrides,
      {options.ranks, deck::Purpose::train, model::parameter_names}, convert::read_architecture);
  if (const std::string warning = run::every_warning(config.checkpoint); !warning.empty())
    std::cout << warning << '\n';
  if (with_files) {
    ProblemList problems;
    const run::RunInputs inputs = check_files(config, Inspection{}, problems);
    check_tokenizer(config, problems);
    problems.throw_if_any(ExitCode::files);
    std::cout << metrics::data_lines(run::summary_of(config, inputs.dataset)) << '\n';
    print_note(inputs.initial_note);
    for (const std::string& line : run::data_warnings(config, inputs.dataset))
      std::cout << line << '\n';
  }
  std::cout << printable(arguments.file) << ": no errors"
            << (with_files ? ", nor in its files\n" : "\n");
  return ExitCode::done;
}

ExitCode inspect(const std::string& path, const InspectOptions& options) {
  std::cout << checkpoint::describe(
      path, engine::saved_parameters,
      options.lists_tensors ? checkpoint::Extent::tensors : checkpoint::Extent::brief);
  if (!options.verifies) return ExitCode::done;
  const std::vector<std::string> problems = checkpoint::verify(path, engine::saved_parameters);
  for (const std::string& problem : problems) std::cerr << printable_lines(problem) << '\n';
  if (problems.empty()) std::cout << "every checksum agrees\n";
  return problems.empty() ? ExitCode::done : ExitCode::files;
}

ExitCode inspect_sample(const DeckArguments& arguments, Index sample) {
  const deck::Config config = deck::read(load(arguments.file), arguments.overrides,
                                         {0, deck::Purpose::train}, convert::read_architecture);
  ProblemList problems;
  const data::Dataset dataset = data::open_dataset(config, problems);
  problems.throw_if_any(ExitCode::files);
  std::cout << sample_text(config, dataset, sample);
  return ExitCode::done;
}

}  // namespace kzero::app
