// The subcommands of kzero. Each returns the process's exit code or throws Error.
#pragma once

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

}  // namespace kzero::app
