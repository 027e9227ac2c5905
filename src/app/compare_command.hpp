// kzero compare: the most probable answers of two models to the same prompts, side by side.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "app/generate_command.hpp"
#include "base/error.hpp"

namespace kzero::app {

struct CompareArguments {
  std::string first, second;   // models A and B: as GenerateArguments::source
  GenerateArguments generate;  // the prompts, and what both models do alike
  Index columns = 80;          // of the output
  bool json = false;
};

/// Adds the subcommand; parsing fills `arguments`.
CLI::App* add_compare(CLI::App& cli, CompareArguments& arguments);

/// Initializes MPI and Kokkos and lets one model after the other answer, so that one is in memory
/// at a time: text on standard output, notes on standard error. Collective over the launch.
ExitCode compare(const CompareArguments& arguments);

}  // namespace kzero::app
