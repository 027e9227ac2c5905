// The subcommands of kzero. Each returns the process's exit code or throws Error.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "app/deck_file.hpp"
#include "base/error.hpp"
#include "base/types.hpp"
#include "metrics/closing_report.hpp"

namespace kzero::app {

/// Initializes MPI and Kokkos and trains. `detail` is that of the closing summary. Collective over
/// the launch.
ExitCode train(const DeckArguments& arguments, metrics::Detail detail);

enum class CheckScope { deck, deck_and_files };

struct CheckOptions {
  Index ranks = 0;  // of the launch; 0 skips checks that depend on it
  CheckScope scope = CheckScope::deck;
};

/// Reads and checks the deck. With files, also reads the files that a run would read and tries to
/// write those that it would write, as at the start of `train`.
ExitCode check(const DeckArguments& arguments, const CheckOptions& options);

/// kzero check --algorithms: runs one step of the deck on this launch, measures algorithms of its
/// products, and writes the fastest to a new file for run.algorithms. Collective over the launch.
ExitCode measure_algorithms(const DeckArguments& arguments, const std::string& file);

struct InspectOptions {
  bool lists_tensors = false;
  bool verifies = false;
};

/// Describes a checkpoint, or the newest one in a folder.
ExitCode inspect(const std::string& checkpoint, const InspectOptions& options);

/// Prints a sequence of a deck's training data, numbered from 0 (see sample_text).
ExitCode inspect_sample(const DeckArguments& arguments, Index sample);

/// Prints a line that begins with "note"; prints nothing for an empty text.
void print_note(const std::string& note);

struct DefaultsArguments {
  bool reference = false;
  std::string config;  // config.json or its folder; empty: the defaults
};

/// Adds `kzero defaults`: the annotated default deck, the deck's reference, or the model of a
/// config.json. Parsing fills `arguments`.
CLI::App* add_defaults(CLI::App& cli, DefaultsArguments& arguments);

/// Prints the requested text. Needs no MPI. Throws Error(files) for a config.json that kzero does
/// not support.
ExitCode defaults(const DefaultsArguments& arguments);

enum class SurveyOutput { text, json };

struct SurveyOptions {
  SurveyOutput output = SurveyOutput::text;
  std::string rates;  // the file to write for `kzero plan --rates`; empty: none
};

/// kzero check --launch: compares the ranks of this launch, measures their nodes and links, and
/// prints the findings on rank 0; also writes a rates file if one is named. Returns done if the
/// ranks can be one run, however slow some are, otherwise other. Collective over the launch.
ExitCode survey_launch(const DeckArguments& arguments, const SurveyOptions& options);

}  // namespace kzero::app
