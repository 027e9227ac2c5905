// A whole run: start or resume, steps, validation, reports, checkpoints, stopping in time.
#pragma once

#include <string>

#include "deck/config.hpp"
#include "runtime/session.hpp"
#include "train/engine.hpp"

namespace kzero::train {

struct RunRequest {
  deck::Config config;    // resolved for this launch
  std::string deck;       // the same as TOML text, every key in it
  std::string deck_file;  // as the user named it
  InitialValues initial;  // of a model that starts from a file; empty: drawn from the seed
};

/// Trains until the deck's last step, or until a stop is agreed. Returns done, or stopped after a
/// checkpoint. Throws Error for everything else. Collective over all ranks of the session.
ExitCode run(const RunRequest& request, const runtime::Session& session);

}  // namespace kzero::train
