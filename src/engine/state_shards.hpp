// The optimizer's state as checkpoint shards: which ranges of which parameters a rank holds.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "checkpoint/format/state_shard.hpp"
#include "optim/optimizer.hpp"
#include "zero/stage.hpp"

namespace kzero::engine {

/// The optimizer's state of a unit on this rank.
struct UnitState {
  const param::UnitSpec* spec;
  const param::UnitLayout* layout;
  zero::Range held;    // of the unit
  optim::State state;  // from held.begin
};

/// The parts of each unit: those that data rank `rank` holds under `placement`, no more than its
/// state does.
struct ShardChoice {
  zero::Placement placement;
  Index rank;
  std::optional<Index> owner{};  // only what this tensor rank owns of parameters that several hold
};

/// Returns shards that are views of the state where it is. `staging` is the way to it on a device,
/// null where the host touches it.
std::vector<checkpoint::StateShard> state_shards(const std::vector<UnitState>& units,
                                                 const ShardChoice& choice,
                                                 const param::StateArrays& arrays,
                                                 checkpoint::Staging* staging);

/// Copies the shards' states to contiguous pinned host memory and makes the shards views of the
/// copies. What computes the states is done.
void copy_states(const tensor::Execution& exec, std::vector<checkpoint::StateShard>& shards,
                 std::span<float> to);

}  // namespace kzero::engine
