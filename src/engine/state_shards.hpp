// The optimizer's state as checkpoint shards: the ranges of parameters that a rank holds.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "checkpoint/format/state_shard.hpp"
#include "optim/optimizer.hpp"
#include "tensor/view.hpp"
#include "zero/stage.hpp"

namespace kzero::engine {

struct UnitState {
  const param::UnitSpec* spec;
  const param::UnitLayout* layout;
  zero::Range held;    // in the unit
  optim::State state;  // from held.begin
};

/// Selects the parts of each unit that data rank `rank` holds under `placement`. The rank's state
/// must contain them.
struct ShardChoice {
  zero::Placement placement;
  Index rank;
  std::optional<Index> owner{};  // selects only parameters that this tensor rank owns
};

/// Returns shards that view the state in place. `staging` gives access to state on a device. It is
/// null if the host can access the state.
std::vector<checkpoint::StateShard> state_shards(const std::vector<UnitState>& units,
                                                 const ShardChoice& choice,
                                                 const param::StateArrays& arrays,
                                                 checkpoint::Staging* staging);

/// Copies the shards' states to contiguous pinned host memory. The shards become views of the
/// copies. The computation of the states must be complete.
void copy_states(const tensor::Execution& exec, std::vector<checkpoint::StateShard>& shards,
                 std::span<float> to);

}  // namespace kzero::engine
