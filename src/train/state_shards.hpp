// Master weights and moments as checkpoint shards: which ranges of which parameters a rank holds,
// in host memory.
#pragma once

#include <vector>

#include "checkpoint/state_shard.hpp"
#include "optim/optimizer.hpp"
#include "zero/stage.hpp"

namespace kzero::train {

/// What a rank's optimizer holds of a unit, on the device.
struct UnitState {
  const param::UnitSpec* spec;
  const param::UnitLayout* layout;
  zero::Range held;    // of the unit
  optim::State state;  // from held.begin
};

/// All parameters, or those alone of which other tensor ranks hold other parts.
enum class Wanted { all, split };

/// On host builds the shards are views of the state itself; on device builds of copies that
/// download() and upload() keep in step.
class StateShards {
 public:
  /// The parts of each unit that data rank `rank` holds under `placement`: no more than its state
  /// does.
  StateShards(const std::vector<UnitState>& units, zero::Placement placement, Index rank,
              Wanted wanted);

  void download();
  void upload() const;
  std::vector<checkpoint::StateShard> views() const { return shards_; }

 private:
  struct Copy {
    float* device;
    std::vector<float> host;
  };

  std::span<float> view(float* device, Index count);

  std::vector<checkpoint::StateShard> shards_;
  std::vector<Copy> copies_;
};

/// Copies the shards' states one behind the other and makes the shards views of the copies.
void copy_states(std::vector<checkpoint::StateShard>& shards, float* to);

}  // namespace kzero::train
