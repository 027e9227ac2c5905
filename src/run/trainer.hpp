// A complete run: start or resume, steps, validation, reports, checkpoints and a timely stop.
#pragma once

#include <functional>
#include <string>

#include "data/dataset.hpp"
#include "deck/config.hpp"
#include "engine/initial_values.hpp"
#include "grid/group.hpp"
#include "runtime/session.hpp"

namespace kzero::run {

struct RunInputs {
  data::Dataset dataset;
  engine::InitialValues
      initial{};               // for a model that starts from a file; empty: drawn from the seed
  std::string initial_note{};  // what could not be checked of that file, as text for people
};

struct RunRequest {
  deck::Config config;    // resolved for this launch
  std::string deck;       // the same as TOML text, every key in it
  std::string deck_file;  // as the user named it
  /// Opens the inputs and rejects bad files, including those that the run will write. Called before
  /// memory is allocated, while stop signals are recorded and the watchdog is active. Collective
  /// over the group, all ranks of the launch.
  std::function<RunInputs(const deck::Config&, const grid::Group&)> open_inputs;
};

/// Trains until the deck's last step or an agreed stop, after a step or between two micro-batches
/// of an evaluation. Returns done, or stopped after a checkpoint. Throws Error for everything else.
/// Collective over all ranks of the session.
ExitCode train(const RunRequest& request, const runtime::Session& session);

}  // namespace kzero::run
