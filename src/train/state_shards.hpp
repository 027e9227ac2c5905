// The optimizer's state as checkpoint shards: which ranges of which parameters a rank holds, where
// the host reads and writes them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "checkpoint/state_shard.hpp"
#include "optim/optimizer.hpp"
#include "zero/stage.hpp"

namespace kzero::train {

/// The optimizer's state of a unit on this rank, on the device.
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

/// The host's way to the state: in place, or in a copy.
struct HostAccess {
  bool in_place;
  std::span<float> room;  // for the copy; empty: allocated at the first use
};

/// Shards that are views of the state itself where the host reaches it, else of a copy that
/// download() and upload() keep in step. Several objects may have the same room: of these one at a
/// time is in use.
class StateShards {
 public:
  /// Throws Error(other) if the room is too small.
  StateShards(const std::vector<UnitState>& units, const ShardChoice& choice,
              const param::StateArrays& arrays, const HostAccess& access);

  void download();
  void upload() const;
  const std::vector<checkpoint::StateShard>& views();

 private:
  /// One array of a shard, and where its copy begins in the room.
  struct Copy {
    float* device;
    std::size_t at, count;
  };

  void add(const UnitState& unit, const param::Part& part, const param::StateArrays& arrays);
  void place_copies();
  std::span<float> host(const Copy& copy) const { return room_.subspan(copy.at, copy.count); }

  std::vector<checkpoint::StateShard> shards_;
  bool in_place_;
  std::span<float> room_;
  std::vector<float> own_room_;
  std::vector<Copy> copies_;
};

/// Copies the shards' states to contiguous memory and makes the shards views of the copies.
void copy_states(std::vector<checkpoint::StateShard>& shards, std::span<float> to);

}  // namespace kzero::train
