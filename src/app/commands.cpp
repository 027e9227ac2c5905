#include "app/commands.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/deck_file.hpp"
#include "app/file_check.hpp"
#include "app/launch.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/types.hpp"
#include "checkpoint/inspect.hpp"
#include "comm/failure.hpp"
#include "convert/architecture.hpp"
#include "convert/model_classes.hpp"
#include "convert/origin.hpp"
#include "convert/tokenizer_files.hpp"
#include "data/dataset.hpp"
#include "deck/config.hpp"
#include "deck/reader.hpp"
#include "deck/writer.hpp"
#include "engine/stored_weights.hpp"
#include "grid/process_grid.hpp"
#include "metrics/data_summary.hpp"
#include "model/definition.hpp"
#include "run/algorithms.hpp"
#include "run/checkpoints.hpp"
#include "run/start_report.hpp"
#include "run/trainer.hpp"
#include "tokenizer/tokenizer.hpp"

namespace kzero::app {

namespace {

constexpr std::size_t columns = 100;  // of the text of a sample

/// The arrays of a sample, with one value per position.
struct SampleArrays {
  SampleArrays(const data::BatchSource& samples, Index sample, Index sequence)
      : inputs(static_cast<std::size_t>(sequence)),
        targets(inputs.size()),
        begin(inputs.size()),
        end(inputs.size()) {
    if (samples.has_weights()) {
      weights.resize(inputs.size());
      samples.weights(sample, 1, weights.data());
    }
    samples.batch(sample, 1, inputs.data(), targets.data());
    samples.documents(sample, 1, inputs.data(), begin.data(), end.data());
  }

  /// Returns whether the token at a position is a target: the position before predicts it.
  bool is_target(Index at) const { return at > begin[at] && targets[at - 1] != no_target; }

  std::vector<Token> inputs, targets;
  std::vector<std::int32_t> begin, end;
  std::vector<float> weights;  // empty: documents have none
};

/// Joins words with spaces into indented lines.
std::string lines_of(const std::vector<std::string>& words) {
  std::string text, line = " ";
  for (const std::string& word : words) {
    if (line.size() + 1 + word.size() > columns && line.size() > 1) {
      text += line + '\n';
      line = " ";
    }
    line += ' ' + word;
  }
  return text + line + '\n';
}

/// The text of a document. Brackets enclose its targets.
std::string text_of(const SampleArrays& sample, Index begin, Index end,
                    const tokenizer::Tokenizer& tokenizer) {
  std::string text;
  for (Index at = begin; at < end; ++at) {
    const bool before = at > begin && sample.is_target(at - 1), here = sample.is_target(at);
    if (here && !before) text += '[';
    if (!here && before) text += ']';
    text += tokenizer.bytes(sample.inputs[at]);
  }
  if (sample.is_target(end - 1)) text += ']';
  std::string shown;
  for (std::string_view rest = text;;) {
    const std::size_t line = rest.find('\n');
    shown += printable(rest.substr(0, line)) + '\n';
    if (line == std::string_view::npos) return shown;
    rest.remove_prefix(line + 1);
  }
}

/// Describes sample `sample` of the training, numbered from 0: each document with its tokens, of
/// which targets are in brackets, and the text if the data's folder has a tokenizer.json. Throws
/// Error(usage) for data without documents, and Error(files).
std::string sample_text(const deck::Config& config, const data::Dataset& dataset, Index sample) {
  KZERO_REQUIRE(deck::is_of_documents(config.data.format), ExitCode::usage,
                "--sample shows documents, but data.format is \"{}\"; set \"documents\"",
                name_of(config.data.format));
  const data::Blend& training = *dataset.training;
  const Index sequence = config.model.sequence;
  const SampleArrays arrays(training, sample, sequence);
  const std::string file = convert::find_tokenizer("", "", config.data).string();
  std::optional<tokenizer::Tokenizer> tokenizer;
  if (!file.empty()) tokenizer.emplace(file);
  const data::BlendOrder::Place place = training.place(sample);
  const auto documents = training.source(place.source).documents_of(place.sample);
  std::string text = fmt::format("sample {}: step {}, documents: {}, targets: {}\n", sample,
                                 data::BatchSizes(config.train).step_of(sample), documents.size(),
                                 *training.targets(sample, 1));
  Index at = 0;
  for (const std::uint32_t document : documents) {
    const Index end = arrays.end[at];
    std::vector<std::string> words;
    for (Index i = at; i < end; ++i)
      words.push_back(arrays.is_target(i) ? fmt::format("[{}]", arrays.inputs[i])
                                          : fmt::format("{}", arrays.inputs[i]));
    const std::string& source = dataset.sources[place.source].name;
    text +=
        fmt::format("document {}{}: positions {} to {}{}\n", document,
                    source.empty() ? "" : " of " + printable(source), at, end - 1,
                    arrays.weights.empty() ? "" : fmt::format(", weight {}", arrays.weights[at]));
    text += lines_of(words);
    if (tokenizer) text += text_of(arrays, at, end, *tokenizer);
    at = end;
  }
  if (at < sequence) text += fmt::format("no document: positions {} to {}\n", at, sequence - 1);
  return text;
}

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

ExitCode measure_algorithms(const DeckArguments& arguments, const std::string& file) {
  deck::Config config;
  const auto read = [&] {
    check_launch(grid::world_group());
    config = read_deck(grid::world_group(), arguments, deck::Purpose::train);
    config.checkpoint.folder.clear();
    config.checkpoint.asynchronous = false;
    config.run.verify_every = 0;
    for (std::string* name :
         {&config.run.metrics, &config.run.profile, &config.run.end_file, &config.run.algorithms})
      name->clear();
    return config.run.threads;
  };
  const runtime::Session session({.choose_threads = read, .has_heartbeat = true});
  config.placement = placement_of(config, session);
  return comm::ending_launch_on_failure([&] {
    const auto request = request_of(arguments, config, session, metrics::Detail::brief);
    run::measure_algorithms(request, session, file);
    return ExitCode::done;
  });
}

ExitCode check(const DeckArguments& arguments, const CheckOptions& options) {
  const bool with_files = options.scope == CheckScope::deck_and_files;
  const deck::Config config = deck::read(
      load(arguments.file), arguments.overrides,
      {options.ranks, deck::Purpose::train, model::parameter_names}, convert::read_architecture);
  if (const std::string warning = run::every_warning(config.checkpoint); !warning.empty())
    std::cout << warning << '\n';
  print_note(convert::export_note(config.model));
  if (with_files) {
    ProblemList problems;
    const run::RunInputs inputs = check_files(config, Inspection{}, problems);
    check_tokenizer(config, problems);
    problems.throw_if_any(ExitCode::files);
    const Index samples = data::BatchSizes(config.train).first_sample(config.train.steps);
    std::cout << metrics::data_lines(run::summary_of(config, inputs.dataset, samples)) << '\n';
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

namespace {

/// The [model] table that the file implies: every key with its value, followed by the reason.
std::string model_of(const std::string& path) {
  const convert::ConfigText file = convert::load_config(path);
  std::vector<deck::ImpliedValue> implied = convert::architecture(file);
  // Read like a deck, so that rules between the keys are checked too. Tokens do not matter here.
  deck::read({"kzero defaults", ""}, {"model.config=" + path, "data.format=llmc"}, {},
             [&](const std::string&) { return implied; });
  const std::string name = printable(file.file.string());
  std::string text = fmt::format("# The model of {}\n[model]\n", name);
  for (const deck::ImpliedValue& one : implied) {
    const deck::Key& key = *deck::find_key(one.path);
    const std::string line = fmt::format("{} = {}", key.name(), as_toml(key, one.value));
    text += fmt::format("{:<36}  # {}\n", line, one.origin.substr(name.size() + 2));
  }
  return text;
}

}  // namespace

CLI::App* add_defaults(CLI::App& cli, DefaultsArguments& arguments) {
  CLI::App* command = cli.add_subcommand("defaults", "print the annotated default deck");
  auto* reference = command->add_flag("--reference", arguments.reference,
                                      "print the deck reference in Markdown instead");
  command
      ->add_option("--config", arguments.config,
                   "print the [model] table of a Hugging Face config.json, or of its folder")
      ->excludes(reference);
  return command;
}

ExitCode defaults(const DefaultsArguments& arguments) {
  std::cout << (!arguments.config.empty() ? model_of(arguments.config)
                : arguments.reference     ? deck::reference_markdown()
                                          : deck::annotated_defaults());
  return ExitCode::done;
}

}  // namespace kzero::app
