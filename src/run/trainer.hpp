// A complete run: start or resume, steps, evaluations, reports, checkpoints, and timely stops.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "checkpoint/folder/origin.hpp"
#include "data/dataset.hpp"
#include "deck/config.hpp"
#include "engine/stored_weights.hpp"
#include "grid/group.hpp"
#include "metrics/closing_report.hpp"
#include "runtime/session.hpp"

namespace kzero::run {

/// The opened inputs of a run.
struct RunInputs {
  data::Dataset dataset;
  engine::InitialValues initial{};   // from a file; empty: drawn from the seed
  engine::InitialValues adapters{};  // likewise, from lora.initial
  std::string adapters_base{};       // hash of the weights that they belong to; empty: not known
  std::string initial_note{};        // what could not be checked in that file, for people
  std::string export_note{};         // why the model cannot be exported, for people
  std::string algorithms{};          // the text of run.algorithms, on the root
};

struct RunRequest {
  deck::Config config;    // resolved for this launch
  std::string deck;       // the same as TOML text, with every key
  std::string deck_file;  // as the user named it
  /// Opens the inputs and refuses bad files, including those that the run will write. Collective
  /// over the group, which has all ranks of the launch. Called before memory is allocated, while
  /// stop signals are recorded and the watchdog is active.
  std::function<RunInputs(const deck::Config&, const grid::Group&)> open_inputs;
  /// Reads what the model brings, for the folder of checkpoints. Called on the root alone. Without
  /// it, the folder keeps nothing of that.
  std::function<checkpoint::Origin()> gather_origin{};
  metrics::Detail detail = metrics::Detail::brief;  // of the closing summary
};

/// Throws AgreedError(usage) if the adapters of lora.initial were trained on other weights than
/// those of model.initial, whose hash is `hash`. The same on every rank.
void require_base(const RunInputs& inputs, const deck::Config& config, std::uint64_t hash);

/// Trains until the deck's last step, or until the ranks agree to stop after a step or between two
/// micro-batches of an evaluation. Returns done, or stopped after a checkpoint. Throws Error for
/// everything else. Collective over all ranks of the session.
ExitCode train(const RunRequest& request, const runtime::Session& session);

}  // namespace kzero::run
