// An engine with all that a run gives it, driven by a test over some of the launch's ranks, and a
// small deck whose sizes divide by nothing.
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

/// Ranks [0, count) of the launch, on those; the other ranks get a group of their own. Collective
/// over all ranks.
grid::Group first_ranks(int count);
bool is_among_first(int count);

/// Whether the launch has many ranks on few cores, and so should try less.
bool has_few_cores();

/// Three blocks of odd widths on the tokens of the reference case "odd"; every unit needs padding
/// on 2 ranks and more.
deck::Config small_deck(Dtype precision = Dtype::fp32);

/// The deck with the block of the Llama family and all that it may have: fewer heads of keys and
/// values, a head width of its own, biases, norms of heads, scaled angles.
deck::Config as_llama(deck::Config config, Index kv_heads);

deck::Config resolved(deck::Config config, Index ranks);

/// Offloads an optimizer that runs on the host's cores alone, in builds for devices.
void set_offload_if_needed(deck::Config& config);

/// A process grid over a group's ranks, and the machinery that a resolved deck chooses, with one
/// thread. Collective over the group.
struct Ranks {
  Ranks(const deck::Config& config, const grid::Group& group);

  const grid::ProcessGrid grid;
  engine::Machinery machinery;
};

/// What replaces the model and the optimizer of a deck.
struct Ingredients {
  model::Family family = model::define;
  std::shared_ptr<const optim::Optimizer> optimizer{};
};

class Training {
 public:
  /// The model stays without values until initialise() or a checkpoint. Collective over `group`.
  Training(const deck::Config& deck, const grid::Group& group,
           deck::GemmBackend backend = deck::GemmBackend::automatic,
           const Ingredients& ingredients = {});
  ~Training();

  engine::StepResult step(Index step) { return engine->step(step, *dataset.training); }
  std::vector<engine::StepResult> run(Index begin, Index end);

  /// The state arrays of all that this rank needs, one behind the other.
  std::vector<float> state();

  const deck::Config config;
  Ranks ranks;
  const grid::ProcessGrid& grid = ranks.grid;
  comm::Traffic& traffic = ranks.machinery.traffic;
  const memory::Ledger& ledger = ranks.machinery.ledger;
  data::Dataset dataset;
  std::unique_ptr<engine::Engine> engine;
};

/// A run with validation holds what was planned, in every category.
void expect_planned_bytes(const Training& training, const std::string& what);

/// The bytes of the state arrays that this rank owns, whatever the stage.
std::string owned_state(Training& training);

/// Losses, norms, rates and loss scales as numbers whose bits can be compared.
std::vector<double> numbers_of(const std::vector<engine::StepResult>& results);

}  // namespace kzero::tests
