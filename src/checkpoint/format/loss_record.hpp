// What a checkpoint records of the losses before it. It decides whether the checkpoint is from
// before the loss left its range, which matters to retention and to the way back.
#pragma once

#include <filesystem>
#include <optional>

#include "base/types.hpp"

namespace kzero::storage {
class Hdf5File;
}

namespace kzero::checkpoint {

/// The range of the losses of a training; run/loss_range.hpp has its rule.
struct LossRecord {
  double last = 0;       // of the last step
  double included = 0;   // the last one within the range
  double mean = 0;       // running, of the losses within the range
  double change = 0;     // running mean of how far two of them in a row are apart
  double lowest = 0;     // that the running mean has been
  Index counted = 0;     // losses within the range so far
  Index sane_step = -1;  // number, from 0, of the last step whose loss was within it; -1: none

  bool operator==(const LossRecord&) const = default;
};

/// Writes the record as attributes of the group "loss"; nothing if there is none.
void put_loss(storage::Hdf5File& file, const std::optional<LossRecord>& record);

/// Returns the record of a manifest, if it has one. Throws Error(files) for impossible numbers of a
/// checkpoint after `steps` steps; `path` is for messages.
std::optional<LossRecord> get_loss(const storage::Hdf5File& file, Index steps,
                                   const std::filesystem::path& path);

}  // namespace kzero::checkpoint
