// kzero defaults: the annotated default deck, the deck's reference, or the model of a config.json.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "base/error.hpp"

namespace kzero::app {

struct DefaultsArguments {
  bool reference = false;
  std::string config;  // config.json or its folder; empty: the defaults
};

/// Adds the subcommand; parsing fills `arguments`.
CLI::App* add_defaults(CLI::App& cli, DefaultsArguments& arguments);

/// Prints the requested text. Needs no MPI. Throws Error(files) for a config.json that kzero does
/// not support.
ExitCode defaults(const DefaultsArguments& arguments);

}  // namespace kzero::app
