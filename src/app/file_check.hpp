// Checks the files of a run before it allocates memory: input files are opened, output files are
// tried. All problems are reported at once, so that a job that waited hours to start does not
// meet them one after the other.
#pragma once

#include "base/problem_list.hpp"
#include "deck/config.hpp"
#include "grid/group.hpp"
#include "run/trainer.hpp"
#include "runtime/session.hpp"

namespace kzero::app {

/// The checks that one of several ranks makes in addition to those that all ranks make.
struct Inspection {
  Index part = 0, parts = 1;      // of the tokens
  bool tries_checkpoints = true;  // on one rank of each node: nodes may see different file systems
  bool is_first =
      true;  // tries files that only one rank writes, and checks the space for checkpoints
};

/// Checks data, token range, initial weights, the paths that the run will write to, and the space
/// for two checkpoints. Adds what is wrong to `problems`; the inputs are usable only if there is
/// nothing. The deck must be resolved. Leaves no file behind.
run::RunInputs check_files(const deck::Config& config, const Inspection& inspection,
                           ProblemList& problems);

/// Adds to `problems` whatever prevents `kzero generate` and `kzero evaluate` from reading the
/// tokenizer.json in the data's folder, if there is one. A training run does not read it.
void check_tokenizer(const deck::Config& config, ProblemList& problems);

/// Makes the checks of check_files() with the work divided among the ranks of the launch. Throws
/// AgreedError(files) with every rank's problems, each listed once. Collective over `world`, all
/// ranks of the session.
run::RunInputs check_files(const deck::Config& config, const runtime::Session& session,
                           const grid::Group& world);

}  // namespace kzero::app
