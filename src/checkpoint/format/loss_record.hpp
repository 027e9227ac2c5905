// The checkpoint's record of the losses before it. The record decides whether the checkpoint is
// from before the loss left its range. Retention and the way back depend on that.
#pragma once

#include <filesystem>
#include <optional>

#include "base/types.hpp"

namespace kzero::storage {
class Hdf5File;
}

namespace kzero::checkpoint {

/// The range of a training's losses. Its rule is in run/loss_range.hpp.
struct LossRecord {
  double last = 0;       // of the last step
  double included = 0;   // the last loss within the range
  double mean = 0;       // running mean of the losses within the range
  double change = 0;     // running mean of the distance of two consecutive ones
  double lowest = 0;     // lowest value of the running mean
  Index counted = 0;     // number of losses within the range so far
  Index sane_step = -1;  // number, from 0, of the last step with a loss within it; -1: none

  bool operator==(const LossRecord&) const = default;
};

/// Writes the record as attributes of the group "loss". Does nothing if `record` is empty.
void put_loss(storage::Hdf5File& file, const std::optional<LossRecord>& record);

/// Returns the record of a manifest, if it has one. Throws Error(files) for impossible numbers of a
/// checkpoint after `steps` steps; `path` is for messages.
std::optional<LossRecord> get_loss(const storage::Hdf5File& file, Index steps,
                                   const std::filesystem::path& path);

}  // namespace kzero::checkpoint
