// An engine with everything that a run provides, driven by a test on some of the launch's ranks,
// and a small deck whose sizes do not divide evenly.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/backends.hpp"
#include "data/dataset.hpp"
#include "engine/engine.hpp"
#include "optim/loss_scaler.hpp"
#include "support/data.hpp"

namespace kzero::tests {

int launch_ranks();

/// Returns the group of ranks [0, count) of the launch on those ranks. The other ranks get a group
/// of their own. Collective over all ranks.
grid::Group first_ranks(int count);
bool is_among_first(int count);

/// Returns whether the launch has many ranks on few cores, so that tests should try fewer cases.
bool has_few_cores();

/// Three blocks of odd widths on the tokens of the reference case "odd". Every unit needs padding
/// on 2 or more ranks.
deck::Config small_deck(Dtype precision = Dtype::fp32);

/// Returns the deck with the Llama family's block and all its options: fewer KV heads, an explicit
/// head width, biases, head norms and scaled angles.
deck::Config as_llama(deck::Config config, Index kv_heads);

/// Resolves a deck. grid.node ranks share a node; 0: all.
deck::Config resolved(deck::Config config, Index ranks);

/// The same for a group of this launch, whose ranks may share a device. Collective over the group.
deck::Config resolved(deck::Config config, const grid::Group& group);

/// Enables offload in device builds for an optimizer that runs only on the host's cores.
void set_offload_if_needed(deck::Config& config);

/// A process grid over a group's ranks, and the components that a resolved deck selects, with one
/// thread. Collective over the group.
struct Ranks {
  Ranks(const deck::Config& config, const grid::Group& group);

  const grid::ProcessGrid grid;
  engine::Machinery machinery;
};

/// Replacements for a deck's model and optimizer.
struct Ingredients {
  model::Family family = model::define;
  std::shared_ptr<const optim::Optimizer> optimizer{};
};

class Training {
 public:
  /// The model has no values until initialise() or a checkpoint. Collective over `group`.
  Training(const deck::Config& deck, const grid::Group& group,
           deck::GemmBackend backend = deck::GemmBackend::automatic,
           const Ingredients& ingredients = {});
  ~Training();

  engine::StepResult step(Index step) { return engine->step(step, *dataset.training); }
  std::vector<engine::StepResult> run(Index begin, Index end);

  /// Returns all state arrays that this rank needs, concatenated.
  std::vector<float> state();

  const deck::Config config;
  Ranks ranks;
  const grid::ProcessGrid& grid = ranks.grid;
  comm::Traffic& traffic = ranks.machinery.traffic;
  const memory::Ledger& ledger = ranks.machinery.ledger;
  data::Dataset dataset;
  std::unique_ptr<engine::Engine> engine;
};

/// Expects that a run with validation uses the planned bytes in every category.
void expect_planned_bytes(const Training& training, const std::string& what);

/// Expects that steps in which each rank had as many micro-batches sent the expected traffic.
void expect_planned_traffic(const Training& training, const std::string& what);

/// The bytes of the state arrays that this rank owns, in any stage.
std::string owned_state(Training& training);

/// Losses, norms, rates, loss scales and choices of experts as numbers for bitwise comparison.
std::vector<double> numbers_of(const std::vector<engine::StepResult>& results);

}  // namespace kzero::tests
