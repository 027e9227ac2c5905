// kzero plan: memory, traffic and time of a deck, or of a model of nominal size.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <vector>

#include "app/deck_file.hpp"
#include "base/error.hpp"
#include "plan/rates.hpp"

namespace kzero::app {

enum class Output { table, json, trace };

struct PlanArguments {
  DeckArguments deck;        // file empty: plan for a nominal size
  std::vector<Index> ranks;  // of each launch; empty: the smallest number that the grid allows
  std::optional<Index> fit;  // bytes per rank
  Index threads = 0;         // per rank; 0: as a run would choose
  Index parameters = 0;      // of a model without a deck
  std::vector<Index> nodes;  // per launch, filled in rank order; empty: unknown
  Index tokens = 0;          // of a campaign; 0: none
  bool search = false;
  bool tensor_overlap = false;  // assume it; runs do not have it
  std::vector<Index> tensor;    // per launch; empty: the deck's, otherwise 1
  std::optional<Index> stage;   // of a launch without a deck; none: all
  plan::GivenRates rates;
  std::string machine;    // the file that describes it; empty: the rates above
  std::string time_line;  // the file to write; empty: none
  Output output = Output::table;
};

/// Adds the subcommand; parsing fills `arguments`.
CLI::App* add_plan(CLI::App& cli, PlanArguments& arguments);

/// Plans without MPI or a device. Throws Error(memory) if nothing fits into the given memory.
ExitCode plan(const PlanArguments& arguments);

}  // namespace kzero::app
